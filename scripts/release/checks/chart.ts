// The chart: rendered by helm for three sets of values, and decoded strictly into Kubernetes' published types.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { run } from '../run.ts'
import { ROOT } from '../source.ts'

const HELM = 'helm.sh/helm/v3/cmd/helm@v3.19.0'
const KUBERNETES = ['--kube-version', '1.31.0']

const VALUES: Readonly<Record<string, string[]>> = {
  'embedded for a trial': [],
  'external database, three replicas': [
    'database.existingSecret=db',
    'replicas=3',
    'serviceMonitor.enabled=true',
    'ingress.enabled=true',
    'ingress.host=api.example.com',
    'ingress.tlsSecret=tls',
  ],
  'workers apart': [
    'database.existingSecret=db',
    'replicas=2',
    'workers.replicas=2',
    'settings.LOG_LEVEL=warn',
    'settings.RATE_LIMIT=100',
  ],
}
const REFUSED: readonly string[][] = [
  ['replicas=3'],
  ['workers.replicas=1'],
  ['replica=3'],
  ['ingress.enabled=true'],
  ['settings.PORT=9000'],
]

// Numbers of a file are floats to helm, those of --set are not.
const SETTINGS = 'settings: { MAX_BODY_BYTES: 2097152, WEBHOOK_ALLOW_PRIVATE: true, LOG_LEVEL: warn, ADMIN_HOST: "::" }'
const WRITTEN: Readonly<Record<string, string>> = {
  MAX_BODY_BYTES: '2097152',
  WEBHOOK_ALLOW_PRIVATE: 'true',
  LOG_LEVEL: 'warn',
  ADMIN_HOST: '::',
}

export async function tryChart(out: string, version: string): Promise<string> {
  const programs = join(ROOT, '.cache/release/go')
  mkdirSync(programs, { recursive: true })
  const env = { ...process.env, GOBIN: programs, GOFLAGS: '-mod=mod' }
  run('go', ['install', HELM], { env, cwd: programs })
  run('go', ['build', '-o', join(programs, 'chart-types'), '.'], {
    env: process.env,
    cwd: join(ROOT, 'scripts/release/checks/chart-types'),
  })
  const helm = (...args: string[]) => run(join(programs, 'helm'), args)
  const chart = join(out, `tundish-chart-${version}.tgz`)
  helm('lint', '--strict', ...KUBERNETES, chart)
  const set = (values: string[]) => values.flatMap((value) => ['--set', value])
  const counts = Object.values(VALUES).map((values) => {
    const rendered = helm('template', 'demo', chart, ...KUBERNETES, ...set(values))
    return run(join(programs, 'chart-types'), [], { input: rendered }).toString().trim()
  })
  for (const values of REFUSED) {
    let refused = false
    try {
      helm('template', 'demo', chart, ...KUBERNETES, ...set(values))
    } catch {
      refused = true
    }
    if (!refused) throw new Error(`The chart accepted ${values.join(', ')}.`)
  }
  checkSettings(
    run(join(programs, 'helm'), ['template', 'demo', chart, ...KUBERNETES, '--values', '-'], { input: SETTINGS }),
  )
  return Object.keys(VALUES)
    .map((name, n) => `${name}: ${counts[n]}`)
    .join('; ')
}

/** Throws unless each setting of the file is in the server's environment once, as the program reads it. */
function checkSettings(rendered: Buffer): void {
  for (const [name, value] of Object.entries(WRITTEN)) {
    const found = [...rendered.toString().matchAll(new RegExp(`- name: ${name}\\n\\s+value: (.+)`, 'g'))].map(
      ([, text]) => text,
    )
    if (found.join() !== `"${value}"`) throw new Error(`The chart wrote ${name}: ${value} as ${found.join(', ')}.`)
  }
}
