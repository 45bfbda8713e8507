# Two stages: the first builds an environment from the wheels in requirements.lock, the second is that and a Python.
# `make image` builds it. tests/install/test_image.py runs the steps as they stand, where there is no container runtime.
# A tag can be moved; `make image BASE=3.13.7-slim-bookworm@sha256:...` pins the base image by its digest, and COMPILER
# that of the first stage, which has the same Python and a C compiler.
ARG PYTHON=3.13.7-slim-bookworm
ARG COMPILER=3.13.7-bookworm

FROM python:${COMPILER} AS build
# Every timestamp in the result; `make image` gives the time of the commit.
ARG SOURCE_DATE_EPOCH=1704067200
ENV SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH} PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
COPY requirements.lock ./
# Everything is fetched in this step, and checked against its hash; the others take it from here.
RUN python -m pip download --quiet --only-binary :all: --require-hashes --dest /wheels/locked --requirement requirements.lock
RUN python -m pip install --quiet --no-index --find-links /wheels/locked --upgrade cython setuptools
COPY pyproject.toml setup.py README.md LICENSE ./
COPY src src
RUN python -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir /wheels .
# With the extra of `maniple admission`: one image for the scheduler and the webhook.
RUN python -m pip wheel --quiet --no-index --find-links /wheels/locked --find-links /wheels --wheel-dir /wheels 'maniple[admission]'
RUN python -m venv --without-pip /opt/maniple
RUN python -m pip --python /opt/maniple/bin/python install --quiet --no-index --no-deps --no-compile /wheels/*.whl
RUN /opt/maniple/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/maniple/lib
RUN find /opt/maniple -exec touch --no-dereference --date=@${SOURCE_DATE_EPOCH} {} +

# Nothing is run here, so nothing is fetched and no tool is needed.
FROM python:${PYTHON}
COPY --from=build /opt/maniple /opt/maniple
ENV PATH=/opt/maniple/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["maniple"]
CMD ["run", "--in-cluster"]
