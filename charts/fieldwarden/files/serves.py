"""What `helm test` runs: both calls are answered under a certificate that names the Service."""

import http.client
import json
import os
import socket
import ssl
import sys

TIMEOUT = 10  # seconds
service, namespace = os.environ["SERVICE"], os.environ["NAMESPACE"]
address = os.environ[service.upper().replace("-", "_") + "_SERVICE_HOST"]
made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "helm-test", "namespace": namespace}}
kind = {"group": "", "version": "v1", "kind": "ConfigMap"}
resource = {"group": "", "version": "v1", "resource": "configmaps"}
review = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {
        "uid": "helm-test",
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "namespace": namespace,
        "name": "helm-test",
        "operation": "CREATE",
        "dryRun": True,
        "userInfo": {"username": "system:apiserver", "groups": ["system:masters"]},
        "object": made,
        "oldObject": None,
        "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions", "dryRun": ["All"]},
    },
}

context = ssl.create_default_context(cafile="/tls/ca.crt")
for phase in ("validate", "mutate"):
    with socket.create_connection((address, 443), timeout=TIMEOUT) as plain:
        name = f"{service}.{namespace}.svc"
        connection = http.client.HTTPConnection(name, timeout=TIMEOUT)
        connection.sock = context.wrap_socket(plain, server_hostname=name)
        connection.request("POST", f"/{phase}", json.dumps(review), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200 or not json.loads(body)["response"]["allowed"]:
            sys.exit(f"/{phase} answered {answer.status} and does not allow what no policy may refuse")
    sys.stdout.write(f"/{phase} answers as {name}\n")
