# Each target runs commands that a person could type. `make course` and `make test` are the two to know.

# PYTHON is the newest Python that the course supports, has its headers, and can make an environment. If there is none,
# it is the newest Python on the path, and set-up then says what is missing.
PYTHONS := python3.13 python3.12 python3.11 python3
WHOLE := import ensurepip, sysconfig; open(sysconfig.get_path("include") + "/Python.h")
PYTHON ?= $(shell for test in '$(WHOLE)' ''; do for p in $(PYTHONS); do \
	$$p -c "$$test" 2>/dev/null && echo $$p && exit; done; done)
COURSE_ENV ?= .venv
RUN := $(COURSE_ENV)/bin/python
export COURSE_ENV

.PHONY: help whole setup course data tour lab build notebooks site image test test-all test-browser \
	test-container with-hosts with-schedulers with-chromium with-buildah lint format hosts calibrate benchmark \
	overhead parts picture screens lock clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

whole:
	@test -d solutions || { \
		echo "make: this is a learner's copy, without solutions and tests: make lab is for you" >&2; exit 2; }

setup:  ## install the locked dependencies and Horovod into .venv (or COURSE_ENV)
	@$(PYTHON) source_code/install/install.py

course: whole data  ## set up a bare machine, execute lessons 00 and 08, and grade the reference solution
	$(RUN) -m lessons --only 00 08
	$(RUN) -m grader check solutions/assignment --no-sandbox --output runs/course

data: setup  ## download CIFAR-10 into the user's cache
	@$(RUN) -m cifar.download

TOUR := --images 4096 --epochs 2 --batch-size 64
tour: data  ## run the six lesson scripts for two short epochs each
	$(RUN) source_code/cifar_single.py $(TOUR)
	for lesson in base batch_norm scalelr warmup lamb; do \
		echo "horovodrun -np 4 python source_code/cifar_$$lesson.py $(TOUR)"; \
		$(COURSE_ENV)/bin/horovodrun -np 4 $(RUN) source_code/cifar_$$lesson.py $(TOUR) || exit 1; done

HOSTS ?= 2
hosts: data with-hosts  ## make several hosts on this machine, and open a shell on the first (HOSTS=2, RATE=1gbit)
	@$(RUN) -m cluster up --hosts $(HOSTS) $(if $(RATE),--rate $(RATE))

PORT ?= 8888
lab: data  ## open the lessons in JupyterLab (PORT=8888)
	@$(RUN) -m lessons.lab --port $(PORT)

build: whole setup  ## write notebooks/ from the lessons' texts, solutions/NN_name.py
	@$(RUN) -m lessons.findings
	@$(RUN) -m grader build

PROFILE ?= quick
notebooks: whole data  ## execute all solved lessons into runs/PROFILE (PROFILE=quick, laptop or gpu)
	$(RUN) -m lessons --profile $(PROFILE)

site: notebooks  ## the same: runs/PROFILE/index.html links the pages of all lessons

COURSE ?= grader/work
STUDENTS ?= 6
.PHONY: release autograde formgrader feedback export similar certificates class
release: whole setup  ## instructors: make the assignments from the lessons, and release them
	$(RUN) -m grader release --course $(COURSE)

autograde: data  ## instructors: grade all submissions into nbgrader's gradebook (FROM=folder or archive)
	$(RUN) -m grader autograde --course $(COURSE) $(if $(FROM),--from "$(FROM)")

formgrader: setup  ## instructors: give points by hand in nbgrader's formgrader (PORT=8888)
	@$(RUN) -m lessons.lab --course $(COURSE) --port $(PORT)

feedback: setup  ## instructors: write one page for each submission, and release it (FROM=download packs them)
	$(RUN) -m grader feedback --course $(COURSE) $(if $(FROM),--from "$(FROM)")

export: setup  ## instructors: write the grades and the summary of the class (FOR=canvas ROSTER=file UNIT=percent)
	$(RUN) -m grader export --course $(COURSE) $(if $(FOR),--for $(FOR)) $(if $(ROSTER),--roster "$(ROSTER)") \
		$(if $(UNIT),--as $(UNIT))

similar: setup  ## instructors: show the most similar programs and answers side by side (OLD=course folders of earlier years)
	$(RUN) -m grader similar --course $(COURSE) $(if $(OLD),--old $(OLD))

certificates: setup  ## instructors: sign a certificate for everybody who passed
	$(RUN) -m grader certify --course $(COURSE)

class: whole data  ## grade a made-up class, and compare with what was expected (STUDENTS=6, at most 30)
	$(RUN) -m tests.support.synthetic_class runs/class --students $(STUDENTS)

TARGET ?= learner
image: whole setup  ## build the container's image (TARGET=learner or grade, BASE=image, GPUS=number)
	$(RUN) source_code/install/image.py --target $(TARGET) $(if $(BASE),--base "$(BASE)") $(if $(GPUS),--gpus $(GPUS))

test: whole with-hosts lint  ## run all that CI runs: formatter, linter and tests
	$(RUN) -m pytest

test-all: whole with-hosts with-schedulers with-chromium with-buildah lint  ## run all tests, the long ones as well (three hours, needs root)
	$(RUN) -m pytest -m "slow or not slow" --hypothesis-profile new

test-browser: with-chromium  ## test the lessons and formgrader in Chromium, with pictures in runs/browser
	$(RUN) -m pytest -m "slow or not slow" tests/browser

test-container: with-buildah  ## build the container's images and test them (needs root)
	$(RUN) -m pytest -m "slow or not slow" tests/container

with-hosts: setup
	@$(PYTHON) source_code/install/install.py --also iproute2 openssh-client openssh-server

with-schedulers: whole setup
	@$(PYTHON) source_code/install/install.py --also slurm-wlm munge

with-chromium: whole setup
	@$(PYTHON) source_code/install/install.py --also chromium

with-buildah: whole setup
	@$(PYTHON) source_code/install/install.py --also buildah debootstrap

lint: setup  ## check the format, the code and the layers of imports, and change nothing
	$(RUN) -m ruff format --check
	$(RUN) -m ruff check
	$(COURSE_ENV)/bin/lint-imports --no-logo --no-cache

format: setup  ## format the code, and repair what the linter can repair
	$(RUN) -m ruff check --fix
	$(RUN) -m ruff format

calibrate: whole setup  ## measure the bounds of the assignment's targets (two hours, resumes)
	$(RUN) -m benchmarks calibrate
	$(RUN) -m benchmarks calibrate --profile fast

benchmark: data  ## compare the course's speed with other ways (25 minutes on 2 cores, resumes)
	$(RUN) -m benchmarks speed

overhead: whole setup  ## measure what grading costs a run (one hour, resumes)
	$(RUN) -m benchmarks overhead

PARTS ?= runs/parts
parts: whole data  ## pack what a machine with a GPU and without a network needs (PARTS=folder)
	$(RUN) source_code/install/pack.py --output $(PARTS)

picture: whole setup  ## draw the pictures of docs, the drawings and the explorables from the code
	$(RUN) -m docs.pictures
	$(RUN) -m lessons.drawings
	$(RUN) -m lessons.explorables

screens: with-chromium  ## take the pictures of a lesson, a grade and a class (after make course, site, class and export)
	@$(RUN) -m docs.pictures.screens

lock: setup  ## write requirements.txt from pyproject.toml
	$(COURSE_ENV)/bin/uv pip compile -q --universal --extra dev --no-header --no-annotate \
		-o requirements.txt pyproject.toml

clean:  ## remove .venv and runs/, but not the user's cache
	rm -rf .venv runs
