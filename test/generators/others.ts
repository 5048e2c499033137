// Generates clients for Python, Go and Java with the tools that are installed, compiles them, and calls the server.
import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { lastJson, type Outcome, run, type Trial, write } from './run.ts'
import { warningsIn } from './typescript.ts'

const PYTHON = process.env['PYTHON'] ?? 'python3'
/** Path of openapi-generator-cli's jar. */
const JAR = process.env['OPENAPI_GENERATOR_JAR']

const PYTHON_USE = `import json, os
from client import AuthenticatedClient
from client.api.sessions import get_session
from client.api.subscriptions import list_subscriptions
from client.models.list_subscriptions_filterstatus import ListSubscriptionsFilterstatus

client = AuthenticatedClient(base_url=os.environ["API"], token=os.environ["KEY"], prefix="", auth_header_name="Service-Secret")
page = list_subscriptions.sync(client=client, filterstatus=ListSubscriptionsFilterstatus.ACTIVE)
session = get_session.sync("session", client=client)
item = page.data[0]
print(json.dumps({"value": session.replies[0].value, "price": item.price, "email": item.profile.email}))
`

// A name that the program below can import; nothing else differs from the defaults.
const PYTHON_CONFIG = `package_name_override: client
post_hooks: []
`

export async function openapiPythonClient({ document, folder, url, key }: Trial): Promise<Outcome> {
  const cwd = join(folder, 'openapi-python-client')
  write(cwd, { 'use.py': PYTHON_USE, 'config.yml': PYTHON_CONFIG })
  const tool = ['-m', 'openapi_python_client']
  const version = (await run(PYTHON, [...tool, '--version'], { cwd })).trim().split(' ').at(-1)!
  const generate = ['generate', '--path', document, '--config', 'config.yml', '--output-path', 'made']
  const output = await run(PYTHON, [...tool, ...generate], { cwd })
  await run(PYTHON, ['-m', 'compileall', '-q', 'made'], { cwd })
  const env = { API: url, KEY: key, PYTHONPATH: 'made' }
  const read = lastJson(await run(PYTHON, ['use.py'], { cwd, env }))
  return { generator: 'openapi-python-client', version, warnings: warningsIn(output), read }
}

const GO_USE = `package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"use/client"
)

func main() {
	withKey := func(_ context.Context, request *http.Request) error {
		request.Header["Service-Secret"] = []string{os.Getenv("KEY")}
		return nil
	}
	api, err := client.NewClientWithResponses(os.Getenv("API"), client.WithRequestEditorFn(withKey))
	check(err)
	active := client.ListSubscriptionsParamsFilterStatusActive
	page, err := api.ListSubscriptionsWithResponse(context.Background(), &client.ListSubscriptionsParams{FilterStatus: &active})
	check(err)
	session, err := api.GetSessionWithResponse(context.Background(), "session")
	check(err)
	item := page.JSON200.Data[0]
	var price int64 = item.Price
	value, err := session.JSON200.Replies[0].Value.AsReplyValue1()
	check(err)
	read, err := json.Marshal(map[string]any{"value": value, "price": price, "email": item.Profile.Email})
	check(err)
	fmt.Println(string(read))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
`

export async function oapiCodegen({ document, folder, url, key }: Trial): Promise<Outcome> {
  const cwd = join(folder, 'oapi-codegen')
  write(cwd, { 'main.go': GO_USE, 'go.mod': 'module use\n\ngo 1.24\n', 'client/.keep': '' })
  const version = (await run('oapi-codegen', ['-version'], { cwd })).trim().split('\n').at(-1)!
  const args = ['-generate', 'types,client', '-package', 'client', '-o', 'client/client.gen.go', document]
  const output = await run('oapi-codegen', args, { cwd })
  await run('go', ['mod', 'tidy'], { cwd })
  await run('go', ['vet', './...'], { cwd })
  const read = lastJson(await run('go', ['run', '.'], { cwd, env: { API: url, KEY: key } }))
  return { generator: 'oapi-codegen', version, warnings: warningsIn(output), read }
}

const PYDANTIC_USE = `import json, os
import openapi_client
configuration = openapi_client.Configuration(host=os.environ["API"], api_key={"projectKey": os.environ["KEY"]})
with openapi_client.ApiClient(configuration) as api:
    page = openapi_client.SubscriptionsApi(api).list_subscriptions(filter_status="active")
    session = openapi_client.SessionsApi(api).get_session("session")
    item = page.data[0]
    print(json.dumps({"value": session.replies[0].value.actual_instance, "price": item.price, "email": item.profile.email}))
`

export async function generatorPython(trial: Trial): Promise<Outcome> {
  const cwd = join(trial.folder, 'openapi-generator-python')
  write(cwd, { 'use.py': PYDANTIC_USE })
  const outcome = await generateWithJar(trial, cwd, ['-g', 'python'])
  await run(PYTHON, ['-m', 'compileall', '-q', 'made'], { cwd })
  const env = { API: trial.url, KEY: trial.key, PYTHONPATH: 'made' }
  return {
    ...outcome,
    generator: 'openapi-generator, python',
    read: lastJson(await run(PYTHON, ['use.py'], { cwd, env })),
  }
}

const JAVA_USE = `package use;

import java.util.Map;
import org.openapitools.client.ApiClient;
import org.openapitools.client.JSON;
import org.openapitools.client.api.SessionsApi;
import org.openapitools.client.api.SubscriptionsApi;
import org.openapitools.client.model.Subscription;

public class Use {
  public static void main(String[] args) throws Exception {
    ApiClient client = new ApiClient().setBasePath(System.getenv("API"));
    client.addDefaultHeader("Service-Secret", System.getenv("KEY"));
    Subscription item = new SubscriptionsApi(client)
        .listSubscriptions(1L, null, null, null, null, null, "active", null, null, null, null).getData().get(0);
    Object value = new SessionsApi(client).getSession("session").getReplies().get(0).getValue().getActualInstance();
    Long price = item.getPrice();
    System.out.println(JSON.getGson().toJson(Map.of("value", value, "price", price, "email", item.getProfile().getEmail())));
  }
}
`

export async function generatorJava(trial: Trial): Promise<Outcome> {
  const cwd = join(trial.folder, 'openapi-generator-java')
  write(cwd, {})
  const outcome = await generateWithJar(trial, cwd, ['-g', 'java'])
  write(join(cwd, 'made'), { 'src/main/java/use/Use.java': JAVA_USE })
  const made = join(cwd, 'made')
  await run('mvn', ['-q', 'compile', 'dependency:build-classpath', '-Dmdep.outputFile=classpath.txt'], { cwd: made })
  appendFileSync(join(made, 'run.sh'), 'exec java -cp "target/classes:$(cat classpath.txt)" use.Use\n')
  const output = await run('sh', ['run.sh'], { cwd: made, env: { API: trial.url, KEY: trial.key } })
  return { ...outcome, generator: 'openapi-generator, java', read: lastJson(output) }
}

// Not about this description: every document of 3.1 gets these.
const ALWAYS = /OpenAPI 3\.1 support is still in beta|Failed to get the schema name: null|Default to typing\.Any/

async function generateWithJar({ document }: Trial, cwd: string, args: string[]): Promise<Outcome> {
  if (!JAR) throw new Error('OPENAPI_GENERATOR_JAR is not set')
  // Its Python target writes no type for the body of a webhook, whatever the body: it gets the document without them.
  const { webhooks: _left, ...rest } = JSON.parse(readFileSync(document, 'utf8'))
  write(cwd, { 'openapi.json': JSON.stringify(rest) })
  const output = await run('java', ['-jar', JAR, 'generate', '-i', 'openapi.json', '-o', 'made', ...args], { cwd })
  const version = (await run('java', ['-jar', JAR, 'version'], { cwd })).trim()
  return { generator: '', version, warnings: warningsIn(output).filter((line) => !ALWAYS.test(line)), read: undefined }
}
