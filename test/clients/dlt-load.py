# Loads a project into DuckDB with the dlt source and prints what is in the tables, as JSON.
import json
import os
import sys

import dlt
from dlt.pipeline.exceptions import PipelineStepFailed
from tundish_dlt import tundish

folder = sys.argv[1]
pipeline = dlt.pipeline(
    "shop",
    destination=dlt.destinations.duckdb(os.path.join(folder, "shop.duckdb")),
    dataset_name="tundish",
    pipelines_dir=os.path.join(folder, "pipelines"),
)
refresh = sys.argv[2] if len(sys.argv) > 2 else None
try:
    pipeline.run(tundish(url=os.environ["URL"], key=os.environ["KEY"]), refresh=refresh)
except PipelineStepFailed as error:
    if "refresh='drop_sources'" not in str(error):
        raise
    print(json.dumps({"refused": str(error)}))
    sys.exit()
trace = pipeline.last_trace.last_normalize_info
loaded = {table: count for table, count in trace.row_counts.items() if not table.startswith("_dlt")} if trace else {}
with pipeline.sql_client() as client:
    ask = lambda sql: [list(row) for row in client.execute_sql(sql)]
    print(json.dumps({
        "loaded": loaded,
        "profiles": ask("select id, email from profiles order by id"),
        "integrations": ask("select integrations from profiles order by id")[-1][0],
        "subscriptions": ask("select id, price, profile__email from subscriptions"),
        "transactions": ask("select id, subscription_id from transactions"),
        "credits": ask("select profile_id, amount::decimal(38, 6)::text, totals__balance::decimal(38, 6)::text, metadata from credit_entries"),
        "replies": ask("select session_id, element__id, state__value from replies"),
        "types": ask("""select column_name, data_type from information_schema.columns
            where table_schema = 'tundish' and table_name = 'subscriptions' and column_name in ('paused_at', 'upgrades_to', 'price_usd')
            order by 1"""),
    }))
