"""A dlt source for Tundish: everything at first, then what changed, by the export's horizon."""

import json
from typing import Any, Iterator, Optional, Sequence

import dlt
from dlt.sources.helpers import requests
from requests.exceptions import ChunkedEncodingError, ConnectionError, Timeout

from .columns import columns_of

# The kinds of records of an export: the table of each, and the schema that its columns come from.
TABLES = {
    "funnel": ("funnels", "Funnel"),
    "experiment": ("experiments", "Experiment"),
    "product": ("products", "Product"),
    "profile": ("profiles", "Profile"),
    "session": ("sessions", "Session"),
    "session_replies": ("replies", "ReplyDetail"),
    "subscription": ("subscriptions", "SubscriptionDetail"),
    "transaction": ("transactions", "TransactionExport"),
}
REPLY_KEY = ["session_id", "screen__id", "element__id"]
REPLY_COLUMNS = ("session_id", "profile_id", "funnel_id", "updated_at")

# How often a stream may break off without having come further.
MOST_BREAKS = 5
TIMEOUT_SECONDS = 60


@dlt.source(name="tundish")
def tundish(
    url: str = dlt.config.value,
    key: str = dlt.secrets.value,
    lists: Optional[Sequence[str]] = None,
) -> Any:
    """The records of a project. `url` is the server, `key` the project's secret key, `lists` the tables to load (all)."""
    base = url.rstrip("/")
    wanted = set(lists) if lists is not None else {table for table, _ in TABLES.values()}
    unknown = wanted - {table for table, _ in TABLES.values()}
    if unknown:
        raise ValueError(f"There is no list called {', '.join(sorted(unknown))}.")

    # A row for each record, in the table of its list.
    @dlt.resource(name="records", write_disposition="merge")
    def records() -> Iterator[Any]:
        state = dlt.current.resource_state()
        columns = _columns(base)
        hints = {table: _hints(table, of_table) for table, of_table in columns.items()}
        for line in _export(base, key, state.get("since")):
            if "horizon" in line:
                # Stored with the load package: when the load fails, the next run reads the same window again.
                state["since"] = line["horizon"]
                return
            table, _ = TABLES.get(line["record"], (None, None))
            if table not in wanted:
                continue
            for row in _rows(table, line["data"]):
                # An object that is null has no column of its own.
                full = {name: value for name, value in row.items() if value is not None or name in columns[table]}
                yield dlt.mark.with_hints(full, hints[table], create_table_variant=True)

    return records


def _columns(base: str) -> dict[str, Any]:
    """The columns of each table with their types, although all values of one may be null."""
    description = requests.get(f"{base}/openapi.json", timeout=TIMEOUT_SECONDS)
    description.raise_for_status()
    schemas = description.json()["components"]["schemas"]
    columns = {table: columns_of(schemas, schema) for table, schema in TABLES.values()}
    shared = columns_of(schemas, "SessionReplies")
    columns["replies"].update({name: shared[name] for name in REPLY_COLUMNS})
    return columns


def _hints(table: str, columns: dict[str, Any]) -> Any:
    key = REPLY_KEY if table == "replies" else "id"
    return dlt.mark.make_hints(table_name=table, primary_key=key, write_disposition="merge", columns=columns)


def _rows(table: str, item: dict[str, Any]) -> list[dict[str, Any]]:
    if table != "replies":
        return [item]
    shared = {name: item[name] for name in REPLY_COLUMNS}
    return [{**shared, **reply} for reply in item["replies"]]


def _export(base: str, key: str, since: Optional[str]) -> Iterator[dict[str, Any]]:
    """The records of the export, then its horizon. A stream that breaks off is resumed behind its last cursor."""
    query = {"from": since} if since else {}
    breaks = 0
    while True:
        waiting: list[dict[str, Any]] = []
        try:
            for line in _lines(base, key, query):
                if "cursor" in line:
                    query["cursor"] = line["cursor"]
                    breaks = 0
                    yield from waiting
                    waiting = []
                elif "horizon" in line:
                    yield line
                    return
                else:
                    waiting.append(line)
        except (ChunkedEncodingError, ConnectionError, Timeout):
            pass
        breaks += 1
        if breaks > MOST_BREAKS:
            raise ConnectionError("The export broke off again and again.")


def _lines(base: str, key: str, query: dict[str, str]) -> Iterator[dict[str, Any]]:
    # The server looks at the case of this name.
    headers = {"Service-Secret": key}
    with requests.get(
        f"{base}/public/v1/export", params=query, headers=headers, stream=True, timeout=TIMEOUT_SECONDS
    ) as answer:
        answer.raise_for_status()
        void_from = answer.headers.get("X-Void-From")
        if void_from:
            raise ValueError(
                f"The server has lost commits since {void_from} that were loaded before. "
                "Run the pipeline once with refresh='drop_sources': it loads everything again."
            )
        for line in answer.iter_lines():
            yield json.loads(line)
