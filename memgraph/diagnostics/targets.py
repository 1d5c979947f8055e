"""What receives alerts: a webhook and PagerDuty's Events API v2. Each makes one attempt; `memgraph.diagnostics.reporting` repeats it."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

import orjson

from memgraph.diagnostics.records import DiagnosticRecord
from memgraph.errors import MemGraphError
from memgraph.model_server import Exchange, ResponseTooLongError, client_options

_MAX_RESPONSE_BYTES = 65_536
_TEMPORARY = frozenset({408, 425, 429})
"""Refusals that may pass; of the others below 500 a repetition changes nothing."""


class DeliveryError(MemGraphError):
    """A target did not accept an alert. Not public: the outlet repeats the attempt, or keeps the alert.

    Attributes
    ----------
    is_final : bool
        Whether another attempt would not help.
    """

    _names_places_only = True

    def __init__(self, problem: str, *, is_final: bool) -> None:
        self.is_final = is_final
        super().__init__(problem)


class Webhook:
    """Posts records as JSON, signed.

    The header ``X-Memgraph-Signature`` is ``v1=`` and the HMAC-SHA256, in hexadecimal, of the bytes ``TIMESTAMP.ID.BODY`` under the secret:
    the timestamp (Unix seconds) and the id are in ``X-Memgraph-Timestamp`` and ``X-Memgraph-Delivery``. The attempts of one alert share
    the id, so a receiver can drop repetitions.
    """

    name = "webhook"

    def __init__(self, address: str, secret: str, *, timeout_s: float, now: Callable[[], float] = time.time) -> None:
        self._address, self._secret = address, secret.encode()
        self._timeout_s = timeout_s
        self._now = now

    def attempt(self, record: DiagnosticRecord, delivery: str) -> None:
        """Post a record.

        Raises
        ------
        DeliveryError
            It was not accepted.
        """
        body, timestamp = orjson.dumps(document_of(record)), str(int(self._now()))
        headers = {
            "x-memgraph-timestamp": timestamp,
            "x-memgraph-delivery": delivery,
            "x-memgraph-signature": signature(self._secret, timestamp, delivery, body),
        }
        _post(self._address, body, headers, timeout_s=self._timeout_s)


class PagerDuty:
    """Triggers an event of PagerDuty's Events API v2. Records of one store and subject belong to one incident."""

    name = "pagerduty"

    def __init__(self, address: str, routing_key: str, *, timeout_s: float) -> None:
        self._address, self._routing_key = address, routing_key
        self._timeout_s = timeout_s

    def attempt(self, record: DiagnosticRecord, delivery: str) -> None:  # noqa: ARG002 - it has a key of its own
        """Trigger an event.

        Raises
        ------
        DeliveryError
            It was not accepted.
        """
        source = record.store_id or "unknown"
        document = document_of(record)
        event = {
            "routing_key": self._routing_key,
            "event_action": "trigger",
            "dedup_key": f"memgraph:{source}:{document['kind']}:{record.subject}",
            "payload": {
                "summary": summary_of(record),
                "source": f"memgraph store {source}",
                "severity": record.severity,
                "timestamp": record.at,
                "component": "memgraph",
                "group": document["kind"],
                "class": record.subject,
                "custom_details": document,
            },
        }
        _post(self._address, orjson.dumps(event), {}, timeout_s=self._timeout_s)


def document_of(record: DiagnosticRecord) -> dict[str, Any]:
    """Return a record as it is sent and written: without what is not known."""
    return record.model_dump(mode="json", exclude_none=True)


def summary_of(record: DiagnosticRecord) -> str:
    """Return a line that says what a record is about."""
    kind = document_of(record)["kind"]
    return f"memgraph {kind}: {record.subject} ({record.severity}), store {record.store_id or 'unknown'}"


def new_delivery() -> str:
    """Return the id that the attempts to send one alert share."""
    return str(uuid4())


def signature(secret: bytes, timestamp: str, delivery: str, body: bytes) -> str:
    """Return the value of the header that proves who sent a body, and when."""
    signed = b".".join((timestamp.encode(), delivery.encode(), body))
    return f"v1={hmac.new(secret, signed, hashlib.sha256).hexdigest()}"


def _post(address: str, body: bytes, headers: Mapping[str, str], *, timeout_s: float) -> None:
    """Post once. Redirects are not followed: who answers at an address must not choose another receiver."""
    import httpx

    try:
        with (
            Exchange(timeout_s=timeout_s, max_bytes=_MAX_RESPONSE_BYTES),
            httpx.Client(**client_options(address, timeout_s=timeout_s)) as client,
        ):
            response = client.post(address, content=body, headers={"content-type": "application/json", **headers})
    except ResponseTooLongError:
        raise DeliveryError("the answer is too long", is_final=True) from None
    except (httpx.HTTPError, TimeoutError, OSError, RuntimeError) as error:  # no thread can start while Python ends
        raise DeliveryError(f"no answer: {type(error).__name__}", is_final=False) from None
    except (httpx.InvalidURL, ValueError):
        raise DeliveryError("the address or a header is not valid", is_final=True) from None
    if not response.is_success:
        status = response.status_code
        is_final = status < 500 and status not in _TEMPORARY
        raise DeliveryError(f"answered with status {status}", is_final=is_final)
