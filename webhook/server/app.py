"""The Flask application of one worker."""

from __future__ import annotations

from flask import Flask, Response
from werkzeug.exceptions import HTTPException

from webhook.server.routes import error, routes
from webhook.server.state import ServerState

_REASONS = {404: "not-found", 405: "method-not-allowed", 308: "not-found"}


def create_app(state: ServerState) -> Flask:
    """`/validate`, `/mutate` and `/validate-policy`; everything else is an error in JSON. Health and metrics are on the other port."""
    app = Flask("fieldwarden", static_folder=None)
    app.register_blueprint(routes(state))

    @app.errorhandler(HTTPException)
    def known(problem: HTTPException) -> Response:
        reason = _REASONS.get(problem.code or 500, "bad-request")
        state.metrics.bad_call(reason)
        answer = error(
            problem.code or 500, reason, "reviews are sent by POST to /validate, /mutate or /validate-policy"
        )
        for name, value in problem.get_headers():
            if name.lower() == "allow":
                answer.headers[name] = value
        return answer

    @app.errorhandler(Exception)
    def unknown(problem: Exception) -> Response:
        state.log.error("internal error", exc_info=problem)
        return error(500, "internal-error", "the review could not be judged; the log says where")

    return app
