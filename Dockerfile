# The Python package in an image of its own, classifying digits:
#     docker build -t ingot . && docker run --rm --gpus all ingot
# Without --gpus it runs on the CPU. Engines are portable: build them in the image or outside.
FROM debian:12 AS build
WORKDIR /ingot
COPY . .
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates git python3 python3-venv
RUN ./dev wheel .venv/bin/python

FROM python:3.11-slim-bookworm
WORKDIR /app
COPY --from=build /ingot/dist/ /wheels/
# NVRTC compiles kernels for the GPU that the image meets.
RUN pip install --no-cache-dir /wheels/*.whl "nvidia-cuda-nvrtc==13.0.88" "cuda-python==13.0.3"
COPY examples/digits/ digits/
COPY examples/python/ python/
ENTRYPOINT ["python", "python/classify.py"]
