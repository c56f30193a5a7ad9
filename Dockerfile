# The course in a container. There are two targets. `learner` has no solutions and no hidden test cases in any layer.
# `grade` has the whole repository. `make image` builds them with docker or buildah, and docs/container.md says how to
# run them.
#
# PYTHON is the version of Python. It must be that of the machine that builds, because the wheels come from there.
# BASE is any Debian or Ubuntu that has this Python installed or in its packages. For GPUs it is a CUDA development
# image (nvidia/cuda:...-devel-ubuntu22.04). GPUS is the number of GPUs of the machine that will run the image. With at
# least four, one for each worker, Horovod exchanges gradients with NCCL. With fewer it uses Gloo, because NCCL refuses
# two workers on one GPU.
ARG PYTHON=3.11
ARG BASE=python:${PYTHON}-slim-bookworm

# This stage is empty here. `make image` replaces it by the wheels that the building machine has downloaded. A second
# build then downloads nothing, and the machine's own settings for package sources need not be repeated here.
FROM scratch AS wheels

FROM ${BASE} AS base
ARG PYTHON
ENV DEBIAN_FRONTEND=noninteractive
# bubblewrap is the grader's sandbox. Debian's Python is installed only if the base has no Python of this version.
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates make bubblewrap \
       $(command -v python${PYTHON} > /dev/null || echo python${PYTHON} python${PYTHON}-venv) \
    && rm -rf /var/lib/apt/lists/*
# If the folder did not exist, a volume that is mounted there would belong to root.
RUN useradd --create-home --uid 1000 learner && install -d -o learner -g learner /home/learner/.cache

# This stage holds all that the course needs. It is built again only if a version, the patch or the installer changes.
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
# The health check asks for Jupyter's version, which needs no token. The token is made at each start, so no layer has
# it.
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://localhost:8888/api', timeout=5)"]
CMD ["python", "-m", "lessons.lab", "--address", "0.0.0.0"]

# This stage chooses what learners get. Only its folder /learner is copied, and its layers are thrown away.
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
