"""A dlt source for Tundish: everything at first, then what changed, by the export's horizon."""

from decimal import Decimal
from typing import Any, Iterator, Optional, Sequence

import dlt
from dlt.sources.helpers import requests
from tundish import Data, LostCommits, OtherProject

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
    "credit_entry": ("credit_entries", "CreditEntryExport"),
}
KEYS: dict[str, Any] = {"replies": ["session_id", "screen__id", "element__id"], "credit_entries": "entry_id"}
# Credits are counted exactly, with up to six digits after the point.
DECIMALS = {"credit_entries"}
REPLY_COLUMNS = ("session_id", "profile_id", "funnel_id", "updated_at")

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
        try:
            with Data(base, key, timeout=TIMEOUT_SECONDS) as data:
                for change in data.changes(state.get("since"), state.get("project_created_at")):
                    if change.horizon is not None:
                        # Stored with the load package: when the load fails, the next run reads the same window again.
                        state["since"] = change.horizon
                        state["project_created_at"] = change.project_created_at
                        return
                    table, _ = TABLES.get(change.record, (None, None))
                    if table not in wanted:
                        continue
                    for row in _rows(table, change.data):
                        # A null object has no column.
                        full = {name: value for name, value in row.items() if value is not None or name in columns[table]}
                        yield dlt.mark.with_hints(full, hints[table], create_table_variant=True)
        except LostCommits as lost:
            if isinstance(lost, OtherProject):
                reason = str(lost)
            else:
                reason = f"The server has lost commits since {lost.void_from} that were loaded before."
            raise ValueError(f"{reason} Run the pipeline once with refresh='drop_sources': it loads everything again.") from None

    return records


def _columns(base: str) -> dict[str, Any]:
    """The columns of each table with their types, although all values of one may be null."""
    description = requests.get(f"{base}/openapi.json", timeout=TIMEOUT_SECONDS)
    description.raise_for_status()
    schemas = description.json()["components"]["schemas"]
    columns = {table: columns_of(schemas, schema, table in DECIMALS) for table, schema in TABLES.values()}
    shared = columns_of(schemas, "SessionReplies")
    columns["replies"].update({name: shared[name] for name in REPLY_COLUMNS})
    return columns


def _hints(table: str, columns: dict[str, Any]) -> Any:
    key = KEYS.get(table, "id")
    return dlt.mark.make_hints(table_name=table, primary_key=key, write_disposition="merge", columns=columns)


def _rows(table: str, item: dict[str, Any]) -> list[dict[str, Any]]:
    if table in DECIMALS:
        return [{**item, "metadata": _floats(item["metadata"])}]
    item = _floats(item)
    if table != "replies":
        return [item]
    shared = {name: item[name] for name in REPLY_COLUMNS}
    return [{**shared, **reply} for reply in item["replies"]]


def _floats(value: Any) -> Any:
    """With plain numbers: dlt writes a decimal inside of JSON as a string, and fails at a whole number of more than 64 bits."""
    if isinstance(value, Decimal) or (isinstance(value, int) and not -(2**63) <= value < 2**64):
        return float(value)
    if isinstance(value, dict):
        return {name: _floats(one) for name, one in value.items()}
    return [_floats(one) for one in value] if isinstance(value, list) else value
