"""Requests with retries: what may have happened is only sent again where that is safe."""

import functools
import itertools
import json
import os
import random
import time
from decimal import Decimal
from email.utils import parsedate_to_datetime
from typing import Any, Callable, Iterator, Mapping, Optional

import httpx

TRIES = 5
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
# Of what `Retry-After` asks.
LONGEST_ASKED_SECONDS = 3600.0
# Nothing was done: such a request may always be sent again.
NOT_DONE = (408, 429, 503)


class ClientError(Exception):
    """An error that another process can receive: its message has other arguments than its class."""

    def __reduce__(self) -> Any:
        return _received, (type(self), self.args), vars(self)


def _received(kind: type[ClientError], args: tuple[Any, ...]) -> ClientError:
    return kind.__new__(kind, *args)


class TundishError(ClientError):
    """
    A response that is no success, or is not from Tundish: `status`, `code` (`X-Error-Code`) and `body`, the response's JSON, and
    `retry_after`, the seconds that the server asks to wait, if it does.
    """

    retry_after: Optional[float] = None

    def __init__(self, status: int, code: Optional[str], body: Any, request_id: Optional[str]) -> None:
        message = body.get("message") if isinstance(body, dict) else None
        sentence = f"The server responded with {status}."
        if status < 300:
            sentence = "The response is not from Tundish, or broke off: check the url."
        elif status < 400:
            sentence = "The server redirects: give the client its final address."
        super().__init__(message or sentence)
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
        if not url.startswith(("http://", "https://")):
            raise ValueError("Give the client the url of the server, such as https://tundish.example.com.")
        clean = {name: _key(value) for name, value in headers.items()}
        self._open = functools.partial(
            httpx.Client, base_url=url, headers=clean, timeout=timeout, transport=transport
        )
        self._opened = (os.getpid(), self._open())
        self._sleep = sleep

    def call(self, method: str, path: str, *, safe: bool, **more: Any) -> Any:
        """The JSON of a response, with decimals as they were sent. `safe`: it may be sent again without an answer."""
        for attempt in itertools.count(1):
            try:
                return read(self._client.request(method, path, **more))
            except (httpx.RequestError, TundishError) as error:
                self.pause(error, attempt, safe)

    def items(self, path: str, query: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The items of a list, page by page."""
        params = dict(query)
        while True:
            page = self.page(path, params)
            yield from page["data"]
            cursor = page["pagination"].get("next_cursor")
            if not cursor:
                return
            params["cursor"] = cursor

    def page(self, path: str, query: Mapping[str, Any]) -> dict[str, Any]:
        page = self.call("GET", path, safe=True, params=query)
        if not isinstance(page, dict) or "pagination" not in page:
            raise TundishError(200, None, page, None)
        return page

    def wait(self, seconds: float) -> None:
        self._sleep(seconds)

    def stream(self, path: str, params: Mapping[str, str]) -> Any:
        return self._client.stream("GET", path, params=dict(params))

    def pause(self, error: Exception, attempt: int, safe: bool) -> None:
        """Waits before the next try, as long as the server asked. Raises the error if there is none."""
        if attempt >= TRIES or not (safe or _is_not_done(error)) or not _may_pass(error):
            raise error
        backoff: float = min(FIRST_PAUSE_SECONDS * 2 ** (attempt - 1), LONGEST_PAUSE_SECONDS)
        # Jitter, so that callers do not come together.
        asked = getattr(error, "retry_after", None)
        self._sleep(backoff * (0.5 + random.random() / 2) if asked is None else asked + random.random())

    def close(self) -> None:
        self._client.close()

    @property
    def _client(self) -> httpx.Client:
        # After a fork, two processes with the same connection would read each other's responses.
        if self._opened[0] != os.getpid():
            self._opened = (os.getpid(), self._open())
        return self._opened[1]


def _key(given: str) -> str:
    """A key without the line break that it may have in a file. One with `…` was shortened where it was copied from."""
    key = given.strip()
    if not all("!" <= character <= "~" for character in key):
        raise ValueError("The key has a character that no key has: give the client the whole key, as it was printed.")
    return key


def _is_not_done(error: Exception) -> bool:
    """Without a connection the request has not arrived."""
    return isinstance(error, httpx.ConnectError) or (isinstance(error, TundishError) and error.status in NOT_DONE)


def _may_pass(error: Exception) -> bool:
    # A success that is an error here broke off, or a proxy sent it.
    return not isinstance(error, TundishError) or error.status in NOT_DONE or error.status >= 500 or error.status < 300


def read(response: httpx.Response) -> Any:
    """The JSON of a response. Raises a `TundishError` for one that is no success, or is no JSON."""
    try:
        body = json.loads(response.text, parse_float=Decimal)
    except ValueError:
        body = None
    if response.is_success and body is not None:
        return body
    headers = response.headers
    error = TundishError(response.status_code, headers.get("X-Error-Code"), body, headers.get("X-Request-Id"))
    error.retry_after = _retry_after(headers)
    raise error


def _retry_after(headers: httpx.Headers) -> Optional[float]:
    """Seconds, at most an hour. A date counts by the clock of the server: ours may be wrong."""
    given = headers.get("Retry-After", "")
    try:
        seconds = float(given) if given.isdigit() else _instant(given) - _instant(headers.get("Date", ""))
    except (TypeError, ValueError):
        return None
    return min(max(seconds, 0.0), LONGEST_ASKED_SECONDS)


def _instant(date: str) -> float:
    return parsedate_to_datetime(date).timestamp()


def exact(value: Any) -> Any:
    """For `json.dumps`: amounts as text keep their digits, dates as the server reads them."""
    if isinstance(value, Decimal):
        return format(value, "f")
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} cannot be sent.")
