# The course in a container: two targets, `learner` (no solutions, no hidden probes, in none of its layers) and `grade`.
# `make image` builds them, with docker or with buildah; docs/container.md says how to run them.
#
# PYTHON: the version, which is that of the machine that builds, because the wheels come from there.
# BASE: any Debian or Ubuntu with that Python, in its packages or by itself. For GPUs a CUDA development image
# (nvidia/cuda:...-devel-ubuntu22.04) and GPUS, how many the machines have that it will run on: with several, Horovod
# exchanges gradients by NCCL; with one by Gloo, because NCCL refuses two workers on one GPU.
ARG PYTHON=3.11
ARG BASE=python:${PYTHON}-slim-bookworm

# Empty here. `make image` puts the wheels in its place that this machine has downloaded, so that a second build
# downloads nothing, and a machine that reaches its packages in a way of its own needs no settings in here.
FROM scratch AS wheels

FROM ${BASE} AS base
ARG PYTHON
ENV DEBIAN_FRONTEND=noninteractive
# bubblewrap is the grader's sandbox. Debian's Python only where the base brings none of this version.
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates make bubblewrap \
       $(command -v python${PYTHON} > /dev/null || echo python${PYTHON} python${PYTHON}-venv) \
    && rm -rf /var/lib/apt/lists/*
# A volume that is mounted where nothing is would be root's.
RUN useradd --create-home --uid 1000 learner && install -d -o learner -g learner /home/learner/.cache

# Everything that the course is installed on; made anew only if a version, the patch or the installer changes.
FROM base AS environment
ARG GPUS=0
ARG PYTHON
ENV COURSE_ENV=/opt/course
RUN apt-get update \
    && apt-get install -y --no-install-recommends g++ patch \
       $(test "$(command -v python${PYTHON})" != /usr/bin/python${PYTHON} || echo python${PYTHON}-dev) \
    && rm -rf /var/lib/apt/lists/*
COPY requirements.txt /course/
COPY source_code/install/install.py source_code/install/horovod-0.28.1.patch /course/source_code/install/
RUN --mount=type=bind,from=wheels,source=/,target=/wheels \
    if [ -n "$(ls /wheels)" ]; then export PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheels; fi; \
    PIP_NO_CACHE_DIR=1 python${PYTHON} /course/source_code/install/install.py --dependencies --gpus ${GPUS}

FROM base AS installed
COPY --from=environment /opt/course /opt/course
ENV COURSE_ENV=/opt/course PATH=/opt/course/bin:${PATH} PYTHONDONTWRITEBYTECODE=1
WORKDIR /course
EXPOSE 8888
# Jupyter's version needs no token, which is made at each start and stands in no layer.
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://localhost:8888/api', timeout=5)"]
CMD ["python", "-m", "lessons.lab", "--address", "0.0.0.0"]

# Chooses what learners get. This stage is thrown away: of its layers nothing but /learner is copied.
FROM installed AS chosen
COPY . /course
RUN PYTHONPATH=source_code:. python -m grader handout /learner

FROM installed AS grade
COPY . /course
RUN python source_code/install/install.py && chmod -R a+rX . \
    && chown -R learner: notebooks benchmarks/results && chown learner: .
ENV COURSE=/home/learner/class
USER learner

FROM installed AS learner
COPY --from=chosen /learner /course
RUN python source_code/install/install.py && chmod -R a+rX . \
    && chown -R learner: notebooks benchmarks/results && chown learner: .
USER learner
