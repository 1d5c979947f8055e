"""What the server counts, for Prometheus: requests by route and status, their time, and what runs. No texts, no names of tenants."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memgraph.logs import logger_of

logger = logger_of(__name__)
ROUTE = "memgraph.route"
"""Where a route writes its name into the scope of a request."""


class Metrics:
    """The counters of one server.

    Parameters
    ----------
    running, stores : callable
        Return how many requests run or wait, and how many stores are open.
    """

    def __init__(self, *, running: Callable[[], int], stores: Callable[[], int]) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "memgraph_requests", "Requests by route and status.", ["route", "status"], registry=self._registry
        )
        self._seconds = Histogram("memgraph_request_seconds", "Time of requests.", ["route"], registry=self._registry)
        Gauge("memgraph_requests_running", "Requests that run or wait.", registry=self._registry).set_function(running)
        Gauge("memgraph_stores_open", "Stores that are open.", registry=self._registry).set_function(stores)

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def page(self) -> Response:
        """Return all counters in Prometheus' text format."""
        return Response(generate_latest(self._registry), media_type=CONTENT_TYPE_LATEST)


class Counted:
    """Counts every request, and logs its route, status and time, never its texts."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = perf_counter(), 500

        async def send_counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_counted)
        finally:
            seconds, route = perf_counter() - began, scope.get(ROUTE, "none")
            self._metrics.count(route, status, seconds)
            logger.info("%s %s %d in %.1f ms", scope["method"], route, status, 1_000 * seconds)
