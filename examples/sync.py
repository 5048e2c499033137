# Reads the subscriptions that changed since the last run, and keeps the horizon in a file: python3 sync.py FILE.
import http.client, json, os, sys, urllib.error, urllib.parse, urllib.request

BEGINNING = "1970-01-01T00:00:00Z"
if len(sys.argv) != 2 or not all(map(os.environ.get, ("TUNDISH_URL", "PROJECT_KEY"))):
    sys.exit("Set TUNDISH_URL and PROJECT_KEY, and name a file: python3 sync.py FILE")
file = sys.argv[1]
since = open(file).read() if os.path.exists(file) else BEGINNING


def page(**query):
    url = f"{os.environ['TUNDISH_URL']}/public/v1/subscriptions?{urllib.parse.urlencode(query)}"
    try:
        request = urllib.request.Request(url)
        # http.client sends the name as it is written; urllib's Request would change its case, which the data API refuses.
        request.headers["Service-Secret"] = os.environ["PROJECT_KEY"]
        with urllib.request.urlopen(request, timeout=60) as response:
            lost = response.headers["X-Void-From"]
            if lost:
                sys.exit(f"The server has lost commits: delete what has an updated_at from {lost} on, and {file}.")
            return json.load(response), response.headers["X-Sync-Horizon"]
    except urllib.error.HTTPError as error:
        sys.exit(f"{error.code} {error.read().decode()}")
    except (OSError, ValueError, http.client.HTTPException) as error:
        sys.exit(f"{os.environ['TUNDISH_URL']}: {error}")


# Every change before the horizon is visible, and none will be added: a window that ends there misses nothing.
_, until = page(**{"filter[updated_at.to]": BEGINNING, "limit": 1})
query = {"filter[updated_at.from]": since, "filter[updated_at.to]": until, "limit": 500}
while True:
    body, _ = page(**query)
    for row in body["data"]:
        print(row["id"], row["status"], row["updated_at"])
    if not body["pagination"]["has_more"]:
        break
    query["cursor"] = body["pagination"]["next_cursor"]
# Only now: a run that ends early is repeated.
with open(file, "w") as out:
    out.write(until)
