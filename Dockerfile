# syntax=docker/dockerfile:1
FROM python:3.13-slim-trixie AS build
WORKDIR /src
RUN python -m venv /venv
COPY pyproject.toml README.md LICENSE ./
COPY webhook ./webhook
RUN /venv/bin/pip install --no-cache-dir --no-compile . \
 && /venv/bin/pip uninstall --yes pip \
 && find /venv -name tests -type d -prune -exec rm -rf {} +

FROM python:3.13-slim-trixie
LABEL org.opencontainers.image.title="fieldwarden" \
      org.opencontainers.image.description="Field-ownership policy for Kubernetes" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /venv /venv
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
EXPOSE 8443 8080
ENTRYPOINT ["/venv/bin/fieldwarden"]
CMD ["serve", "--policies", "/etc/fieldwarden/policies", "--self-signed", "/tmp/tls"]
