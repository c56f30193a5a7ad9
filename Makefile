# Every target is one command that a person could type; `make course` and `make test` are the two to know.
# The newest Python that the course supports and that can make an environment and compile for it; else the newest there is.
PYTHONS := python3.13 python3.12 python3.11 python3
WHOLE := import ensurepip, sysconfig; open(sysconfig.get_path("include") + "/Python.h")
PYTHON ?= $(shell for test in '$(WHOLE)' ''; do for p in $(PYTHONS); do \
	$$p -c "$$test" 2>/dev/null && echo $$p && exit; done; done)
COURSE_ENV ?= .venv
RUN := $(COURSE_ENV)/bin/python
export COURSE_ENV

.PHONY: help whole setup course data tour lab build notebooks site image test test-all test-browser test-container with-chromium with-buildah lint format calibrate benchmark overhead parts lock clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

whole:
	@test -d solutions || { echo "make: this is a learner's copy, without solutions and tests: make lab is for you" >&2; exit 2; }

setup:  ## make .venv (or COURSE_ENV): locked dependencies and Horovod
	@$(PYTHON) source_code/install/install.py

course: whole data  ## from a bare machine to the first lesson, the assignment's, and the reference solution's grade card
	$(RUN) -m lessons --only 00 08
	$(RUN) -m grader check solutions/assignment --no-sandbox --output runs/course

data: setup  ## fetch CIFAR-10 into the user's cache
	@$(RUN) -m cifar.download

TOUR := --images 4096 --epochs 2 --batch-size 64
tour: data  ## the six lesson scripts, two short epochs each
	$(RUN) source_code/cifar_single.py $(TOUR)
	for lesson in base batch_norm scalelr warmup lamb; do \
		echo "horovodrun -np 4 python source_code/cifar_$$lesson.py $(TOUR)"; \
		$(COURSE_ENV)/bin/horovodrun -np 4 $(RUN) source_code/cifar_$$lesson.py $(TOUR) || exit 1; done

PORT ?= 8888
lab: data  ## open the lessons' notebooks in JupyterLab, at Start Here (PORT=8888)
	@$(RUN) -m lessons.lab --port $(PORT)

build: whole setup  ## make notebooks/ from the lessons' texts, solutions/NN_name.py
	@$(RUN) -m grader build

PROFILE ?= quick
notebooks: whole data  ## execute all lessons, solved, into runs/PROFILE (PROFILE=quick, laptop or gpu)
	$(RUN) -m lessons --profile $(PROFILE)

site: notebooks  ## the same: its pages are a site, runs/PROFILE/index.html

COURSE ?= grader/work
STUDENTS ?= 6
.PHONY: release autograde formgrader feedback export certificates class
release: whole setup  ## instructors: make the assignments from the lessons, and release them with nbgrader
	$(RUN) -m grader release --course $(COURSE)

autograde: data  ## instructors: grade what was handed in into nbgrader's gradebook (FROM=folder or archive)
	$(RUN) -m grader autograde --course $(COURSE) $(if $(FROM),--from "$(FROM)")

formgrader: setup  ## instructors: look at submissions and give points by hand, in nbgrader's formgrader (PORT=8888)
	@$(RUN) -m lessons.lab --course $(COURSE) --port $(PORT)

feedback: setup  ## instructors: a page a submission, released
	$(RUN) -m grader feedback --course $(COURSE)

export: setup  ## instructors: the table for an LMS, the class's summary
	$(RUN) -m grader export --course $(COURSE)

certificates: setup  ## instructors: sign a certificate for all who passed
	$(RUN) -m grader certify --course $(COURSE)

class: whole data  ## grade a made-up class from nothing, and compare with what was expected (STUDENTS=6, 30 is the most)
	$(RUN) -m tests.support.synthetic_class runs/class --students $(STUDENTS)

TARGET ?= learner
image: whole setup  ## build the container's image with docker or buildah (TARGET=learner or grade, BASE=another base image, GPUS=how many)
	$(RUN) source_code/install/image.py --target $(TARGET) $(if $(BASE),--base "$(BASE)") $(if $(GPUS),--gpus $(GPUS))

test: whole setup lint  ## everything that CI runs
	$(RUN) -m pytest

test-all: whole with-chromium with-buildah lint  ## everything that is checked, the long parts as well (two hours; as root, for the container)
	$(RUN) -m pytest -m "slow or not slow" --hypothesis-profile new

test-browser: with-chromium  ## a learner's first hour and an instructor's look, in Chromium; pictures in runs/browser
	$(RUN) -m pytest -m "slow or not slow" tests/browser

test-container: with-buildah  ## build the images on a base made by debootstrap, and run things in them; as root
	$(RUN) -m pytest -m "slow or not slow" tests/container

with-chromium: whole setup
	@$(PYTHON) source_code/install/install.py --also chromium

with-buildah: whole setup
	@$(PYTHON) source_code/install/install.py --also buildah debootstrap

lint: setup  ## formatter, linter and the layers of imports, without changing anything
	$(RUN) -m ruff format --check
	$(RUN) -m ruff check
	$(COURSE_ENV)/bin/lint-imports --no-logo --no-cache

format: setup  ## format the code and mend what the linter can mend
	$(RUN) -m ruff check --fix
	$(RUN) -m ruff format

calibrate: whole setup  ## measure where the assignment's targets must lie (two hours; goes on where it was interrupted)
	$(RUN) -m benchmarks calibrate
	$(RUN) -m benchmarks calibrate --profile fast

benchmark: data  ## compare our speed with what people would pick instead (20 minutes on 2 cores; goes on where it was interrupted)
	$(RUN) -m benchmarks speed

overhead: whole setup  ## measure what being graded costs a run (an hour; goes on where it was interrupted)
	$(RUN) -m benchmarks overhead

PARTS ?= runs/parts
parts: whole data  ## pack what a machine with a GPU and without network needs, for source_code/install/trial.py (PARTS=folder)
	$(RUN) source_code/install/pack.py --output $(PARTS)

lock: setup  ## write requirements.txt from pyproject.toml, for all Pythons that it names
	$(COURSE_ENV)/bin/uv pip compile -q --universal --extra dev --no-header --no-annotate -o requirements.txt pyproject.toml

clean:  ## remove .venv and what runs left (not the user's cache)
	rm -rf .venv runs
