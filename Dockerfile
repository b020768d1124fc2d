# The product's image: every process of docker-compose.yml runs it with another command.
FROM python:3.11-slim-bookworm

ENV PYTHONUNBUFFERED=1
WORKDIR /app

COPY requirements.lock ./
# pip compiles what it installs; the base image comes without the bytecode of Python's own library.
RUN pip install --no-cache-dir --require-hashes --requirement requirements.lock \
 && python -m compileall -q -j 0 -x '/tests?/' /usr/local/lib/python3.11

COPY . .
# At run time nobody may write here, and compiling anew costs seconds of each start. Volumes mounted
# on a folder take its owner. Static files need no collecting: WhiteNoise serves those of the apps.
RUN python -m compileall -q -j 0 . \
 && useradd --system --create-home baton \
 && install --directory --owner=baton /data /var/lib/speech

USER baton
ENV BATON_DATA_DIR=/data
EXPOSE 8000
CMD ["uvicorn", "config.asgi:application", "--host", "0.0.0.0", "--port", "8000", "--lifespan", "off", "--timeout-graceful-shutdown", "2"]
