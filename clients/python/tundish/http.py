"""Requests with retries: what may have happened is only sent again where that is safe."""

import json
import random
import time
from decimal import Decimal
from typing import Any, Callable, Mapping, Optional

import httpx

TRIES = 5
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
# Nothing was done: such a request may always be sent again.
NOT_DONE = (408, 429, 503)


class TundishError(Exception):
    """A response that is no success: `status`, `code` (`X-Error-Code`) and `body`, the response's JSON."""

    def __init__(self, status: int, code: Optional[str], body: Any, request_id: Optional[str]) -> None:
        message = body.get("message") if isinstance(body, dict) else None
        super().__init__(message or f"The server responded with {status}.")
        self.status = status
        self.code = code
        self.body = body
        self.request_id = request_id


class Http:
    """Sends requests of one key. `sleep` waits between tries."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        timeout: float = 150.0,
        transport: Optional[httpx.BaseTransport] = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = httpx.Client(base_url=url.rstrip("/"), headers=dict(headers), timeout=timeout, transport=transport)
        self._sleep = sleep

    def call(self, method: str, path: str, *, safe: bool, **more: Any) -> Any:
        """The JSON of a response, with decimals as they were sent. `safe`: it may be sent again without an answer."""
        response = self._send(method, path, safe, more)
        return read(response)

    def stream(self, path: str, params: Mapping[str, str]) -> Any:
        return self._client.stream("GET", path, params=dict(params))

    def close(self) -> None:
        self._client.close()

    def _send(self, method: str, path: str, safe: bool, more: dict[str, Any]) -> httpx.Response:
        for attempt in range(1, TRIES + 1):
            try:
                response = self._client.request(method, path, **more)
            except httpx.TransportError as error:
                # Without a connection the request has not arrived.
                if attempt == TRIES or not (safe or isinstance(error, httpx.ConnectError)):
                    raise
                self._sleep(pause(attempt, None))
                continue
            again = response.status_code in NOT_DONE or (safe and response.status_code >= 500)
            if not again or attempt == TRIES:
                return response
            self._sleep(pause(attempt, response.headers.get("Retry-After")))
        raise AssertionError("unreachable")


def pause(attempt: int, retry_after: Optional[str]) -> float:
    """Seconds: as the server asked, or twice as long each time, with jitter so that callers do not come together."""
    if retry_after is not None and retry_after.isdigit():
        return float(retry_after) + random.random()
    longest: float = min(FIRST_PAUSE_SECONDS * 2 ** (attempt - 1), LONGEST_PAUSE_SECONDS)
    return longest * (0.5 + random.random() / 2)


def read(response: httpx.Response) -> Any:
    """The JSON of a response. Raises a `TundishError` for one that is no success."""
    try:
        body = json.loads(response.text, parse_float=Decimal) if response.text else None
    except ValueError:
        body = None
    if response.is_success:
        return body
    raise TundishError(
        response.status_code, response.headers.get("X-Error-Code"), body, response.headers.get("X-Request-Id")
    )


def exact(value: Any) -> Any:
    """For `json.dumps`: amounts as text keep their digits, dates as the server reads them."""
    if isinstance(value, Decimal):
        return format(value, "f")
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} cannot be sent.")
