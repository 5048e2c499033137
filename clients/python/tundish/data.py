"""The data API: writes records, reads lists and objects, and everything that changed."""

import json
import re
import secrets
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Iterable, Iterator, Mapping, Optional, Sequence, Union, cast

import httpx

from .http import NOT_DONE, ClientError, Http, TundishError, exact, read

# What a call may have at most; the bytes leave room for what surrounds the records.
MOST_RECORDS = 1000
MOST_BYTES = 1_000_000
# The most that a page of each list may have.
LARGEST_PAGE = 100
LARGEST_PAGES = {"/profiles": 500, "/sessions": 500, "/subscriptions": 500, "/transactions": 500}

Record = Mapping[str, Any]


@dataclass
class Result:
    """The sums of all calls. Each of `rejects` has its `index` among the given records, a `code` and a `reason`."""

    read: int = 0
    written: int = 0
    unchanged: int = 0
    skipped: int = 0
    erased: int = 0
    rejected: int = 0
    rejects: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Change:
    """A record that changed, or with `horizon` the end of all: the `since` of the next time, with `project_created_at`."""

    record: Optional[str] = None
    data: Optional[dict[str, Any]] = None
    horizon: Optional[str] = None
    project_created_at: Optional[str] = None


class LostCommits(ClientError):
    """The server has lost commits that were read before: delete what has a later `updated_at`, and read without `since`."""

    def __init__(self, void_from: str) -> None:
        super().__init__(f"The server has lost commits since {void_from}.")
        self.void_from = void_from


class OtherProject(LostCommits):
    """What was read before is of another project with the same id, as of a server that was set up anew: delete all of it."""

    def __init__(self, created_at: str) -> None:
        super().__init__("0001-01-01T00:00:00.000000Z")
        self.args = (f"The project was created at {created_at}: what was read before is of a former one.",)


class Data:
    """The records of a project. `key` is a secret key of it; to write, one with the scope `write` is enough."""

    def __init__(self, url: str, key: str, **more: Any) -> None:
        # The server looks at the case of this name.
        self._http = Http(f"{url.rstrip('/')}/public/v1", {"Service-Secret": key}, **more)

    def write(self, records: Iterable[Record], *, skip_bad: bool = True, events: bool = True) -> Result:
        """
        Writes records in calls of up to a thousand, in their order. Sending them again changes nothing, so every call is repeated
        until it has a response, at most five times. Bad records are left out and listed; without `skip_bad` the first call with one
        raises, and neither it nor a later one is written.
        """
        total = Result()
        params = {"skip_bad": str(skip_bad).lower(), "events": "on" if events else "off"}
        for batch in _batches(records):
            self._write(batch, params, skip_bad, total)
        return total

    def get(self, path: str) -> Any:
        """One object, such as `/profiles/pro_ada`, or the list of `/sessions/ses_ada/replies`."""
        return self._http.call("GET", path, safe=True)

    def all(self, path: str, **params: Union[str, int]) -> Iterator[dict[str, Any]]:
        """All records of a list, page by page: `all("/profiles", **{"filter[country]": "DE"})`."""
        return self._http.items(path, {"limit": LARGEST_PAGES.get(path, LARGEST_PAGE), **params})

    def total(self, path: str, **params: Union[str, int]) -> int:
        """How many records of a list match, without reading them."""
        return cast(int, self._http.page(path, {"limit": 1, **params})["pagination"]["total"])

    def anonymize(self, profile_ids: Sequence[str]) -> str:
        """Removes the personal data of these profiles, all or nothing. Returns the server's sentence."""
        if isinstance(profile_ids, str):
            # Its letters may be ids of others.
            raise TypeError("Give anonymize a list of ids.")
        content = json.dumps({"profile_ids": list(profile_ids)})
        headers = {"Content-Type": "application/json"}
        return cast(str, self._http.call("POST", "/profiles/anonymize", safe=True, content=content, headers=headers)["message"])

    def changes(self, since: Optional[str] = None, project_created_at: Optional[str] = None) -> Iterator[Change]:
        """
        Everything that changed since a horizon, or everything there is, each change once; the last one has the `horizon` and the
        `project_created_at` to keep for the next time. A stream that breaks off is resumed. Raises `LostCommits`, and `OtherProject` if
        the project was created at another instant than the given one.
        """
        query = {"from": since} if since else {}
        project = {"created_at": project_created_at} if project_created_at else {}
        breaks = 0
        while True:
            waiting: list[Change] = []
            try:
                for line in self._lines(query, project):
                    if "horizon" in line:
                        yield Change(horizon=line["horizon"], project_created_at=project.get("created_at"))
                        return
                    if "cursor" in line:
                        query["cursor"] = line["cursor"]
                        breaks = 0
                        yield from waiting
                        waiting = []
                    else:
                        waiting.append(Change(line["record"], line["data"]))
                raise httpx.ReadError("The export ended before its last line.")
            except (httpx.RequestError, TundishError) as error:
                breaks += 1
                self._http.pause(error, breaks, safe=True)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> "Data":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, batch: list[str], params: dict[str, str], skip_bad: bool, total: Result, again: bool = False) -> None:
        try:
            answer = self._post(batch, params)
        except TundishError as error:
            if not skip_bad:
                raise
            if _has_rejects(error.body):
                # All of them are bad.
                answer = error.body
            elif not self._is_for_records(error, params):
                raise
            elif len(batch) > 1:
                # Refused as a whole: until the bad record is alone.
                half = len(batch) // 2
                self._write(batch[:half], params, skip_bad, total)
                self._write(batch[half:], params, skip_bad, total)
                return
            elif not error.code and not again:
                # A firewall that is overloaded refuses now and then what it lets pass a moment later.
                return self._write(batch, params, skip_bad, total, again=True)
            else:
                answer = {**vars(Result(read=1, rejected=1)), "rejects": [_reject_of(error)]}
        if not _has_rejects(answer):
            raise TundishError(200, None, answer, None)
        for reject in answer["rejects"]:
            total.rejects.append({**reject, "index": reject["index"] + total.read})
        for name in ("read", "written", "unchanged", "skipped", "erased", "rejected"):
            setattr(total, name, getattr(total, name) + answer[name])

    def _post(self, batch: list[str], params: dict[str, str]) -> Any:
        body = f'{{"records":[{",".join(batch)}]}}'.encode()
        headers = {"Content-Type": "application/json"}
        return self._http.call("POST", "/records", safe=True, content=body, params=params, headers=headers)

    def _is_for_records(self, error: TundishError, params: dict[str, str]) -> bool:
        """
        Whether it is the records that are refused. A firewall that refuses everything, or a proxy that alters calls, says nothing
        of them.
        """
        if error.code and error.status not in (400, 413):
            return False
        if error.status < 300 or error.status >= 500 or error.status in NOT_DONE:
            return False
        try:
            # This passes each firewall that looks at records; Tundish refuses it after it has checked the key.
            self._post([], params)
        except TundishError as refusal:
            return refusal.code == "invalid_property"
        return False

    def _lines(self, query: dict[str, str], project: dict[str, str]) -> Iterator[dict[str, Any]]:
        with self._http.stream("/export", query) as response:
            if not response.is_success:
                response.read()
                read(response)
            created_at = response.headers.get("X-Project-Created-At")
            # A server that is older does not send it.
            if created_at and project.setdefault("created_at", created_at) != created_at:
                raise OtherProject(created_at)
            void_from = response.headers.get("X-Void-From")
            if void_from:
                raise LostCommits(void_from)
            for text in _lines_of(response):
                try:
                    line = json.loads(text, parse_float=Decimal)
                except ValueError:
                    line = None
                if not isinstance(line, dict) or not line.keys() & {"record", "cursor", "horizon"}:
                    raise httpx.ReadError("The export broke off, or a proxy sent something else.")
                yield line


def _lines_of(response: httpx.Response) -> Iterator[bytes]:
    """Lines end with a line feed only: httpx also ends them at characters that a text may contain, such as U+2028."""
    rest = b""
    for chunk in response.iter_bytes():
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
    if rest:
        yield rest


def _has_rejects(body: Any) -> bool:
    return isinstance(body, dict) and "rejects" in body


def _reject_of(error: TundishError) -> dict[str, Any]:
    if error.code:
        return {"index": 0, "code": error.code, "reason": str(error)}
    return {"index": 0, "code": "refused_by_proxy", "reason": f"A proxy or firewall refused it with status {error.status}."}


# What `json.dumps` takes for a text, because it knows no exact number. No record has this mark.
_MARK = secrets.token_hex(8)
_NUMBER = re.compile(f'"{_MARK}([^"]*)"')


def _marked(value: Any) -> Any:
    return f"{_MARK}{exact(value)}" if isinstance(value, Decimal) else exact(value)


def _batches(records: Iterable[Record]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for record in records:
        text = _NUMBER.sub(r"\1", json.dumps(record, default=_marked))
        if batch and (len(batch) == MOST_RECORDS or size + len(text) > MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text) + 1
    if batch:
        yield batch
