# The app: page, API and record. The record lives in the volume /data; put a proxy with TLS in front of it.
#
#   docker build -t surelist .
#   docker run --rm -v surelist:/data surelist token create --role admin --name me
#   docker run -p 127.0.0.1:8400:8400 -v surelist:/data surelist
FROM python:3.12-slim
RUN apt-get update && apt-get install -y --no-install-recommends \
    libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0 fonts-dejavu-core && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home --uid 10001 surelist && install -d -o surelist /data
COPY pyproject.toml constraints.txt README.md LICENSE /src/
COPY src /src/src
RUN pip install --no-cache-dir -c /src/constraints.txt "/src[service,postgres,pdf]" && rm -rf /src
ENV SURELIST_HOME=/data
USER surelist
VOLUME /data
EXPOSE 8400
HEALTHCHECK CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8400/healthz')"]
ENTRYPOINT ["surelist"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8400", "--login"]
