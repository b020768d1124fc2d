# The product's image: every process of docker-compose.yml runs it with another command.
FROM python:3.11-slim-bookworm

ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
WORKDIR /app

COPY requirements.lock ./
RUN pip install --no-cache-dir --require-hashes --requirement requirements.lock

COPY . .
# collectstatic needs settings, not servers; the real secret comes with the container's environment.
RUN BATON_DATA_DIR=/tmp/build python manage.py collectstatic --noinput \
 && rm -rf /tmp/build \
 && useradd --system --create-home baton \
 && install --directory --owner=baton /data

USER baton
ENV BATON_DATA_DIR=/data
EXPOSE 8000
CMD ["uvicorn", "config.asgi:application", "--host", "0.0.0.0", "--port", "8000", "--lifespan", "off", "--timeout-graceful-shutdown", "2"]
