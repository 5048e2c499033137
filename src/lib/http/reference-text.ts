// The OpenAPI description of a listener as Markdown, for readers without a browser: language models, terminals, search.

interface Schema {
  $ref?: string
  type?: string | string[]
  format?: string
  description?: string
  enum?: unknown[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  anyOf?: Schema[]
  oneOf?: Schema[]
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  default?: unknown
}

interface Body {
  content?: Record<string, { schema?: Schema }>
}

interface Operation {
  summary: string
  description?: string
  tags?: string[]
  security?: Record<string, unknown>[]
  parameters?: { name: string; in: string; required?: boolean; description?: string; schema: Schema }[]
  requestBody?: Body
  responses?: Record<string, Body & { description: string }>
}

export interface Document {
  info: { title: string; version: string; description?: string }
  tags?: { name: string; description?: string }[]
  paths: Record<string, Record<string, Operation>>
  webhooks?: Record<string, Record<string, Operation>>
  components?: { schemas?: Record<string, Schema>; securitySchemes?: Record<string, { name?: string }> }
}

/** The whole reference: introduction, operations by tag, and each named schema once. */
export function referenceText(document: Document): string {
  const { info, tags = [], paths, webhooks = {}, components = {} } = document
  const operations = [...operationsOf(paths), ...operationsOf(webhooks)]
  const parts = tags.map(({ name, description = '' }) => {
    const own = operations.filter(({ operation }) => operation.tags?.includes(name))
    if (own.length === 0) return ''
    return `## ${name}\n\n${description}\n\n${own.map((one) => operationText(one, document)).join('\n\n')}\n\n`
  })
  const schemas = Object.entries(components.schemas ?? {}).map(([name, schema]) => schemaText(name, schema))
  return `# ${info.title} ${info.version}: reference\n\n${info.description ?? ''}\n\n${parts.join('')}## Schemas\n\n${schemas.join('\n\n')}\n`
}

interface Named {
  method: string
  path: string
  operation: Operation
}

const operationsOf = (paths: Document['paths']): Named[] =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )

function operationText({ method, path, operation }: Named, { components }: Document): string {
  const { summary, description, security = [], parameters = [], requestBody, responses = {} } = operation
  const keys = security.flatMap((one) => Object.keys(one)).map((name) => components?.securitySchemes?.[name]?.name)
  const rows = parameters.map(({ name, in: place, required, description: about = '', schema }) =>
    row(`\`${name}\``, place, typeText(schema), required ? 'yes' : '', cell(about)),
  )
  const outcomes = Object.entries(responses).map(([status, response]) =>
    row(status, bodyType(response), cell(response.description)),
  )
  return [
    `### ${path.startsWith('/') ? `${method} ${path}` : path}`,
    `${summary}.${description ? ` ${description}` : ''}`,
    keys.length > 0 ? `Key: header \`${keys.join('`, `')}\`.` : '',
    rows.length > 0 ? table(['parameter', 'in', 'type', 'required', ''], rows) : '',
    requestBody ? `Body: ${bodyType(requestBody)}` : '',
    table(['response', 'body', ''], outcomes),
  ]
    .filter((part) => part !== '')
    .join('\n\n')
}

function schemaText(name: string, schema: Schema): string {
  const { properties } = schema
  if (!properties) return `### ${name}\n\n${typeText(schema)}${schema.description ? `: ${schema.description}` : ''}`
  const rows = Object.entries(properties).map(([field, inner]) =>
    row(
      `\`${field}\``,
      typeText(inner),
      schema.required?.includes(field) ? 'yes' : '',
      cell(`${inner.description ?? ''}${nestedText(inner)}`),
    ),
  )
  return `### ${name}\n\n${schema.description ? `${schema.description}\n\n` : ''}${table(['field', 'type', 'required', ''], rows)}`
}

/** The fields of an object that has no name, in one line. */
function nestedText(schema: Schema): string {
  const inner = schema.properties ?? schema.items?.properties
  if (!inner) return ''
  return ` Fields: ${Object.entries(inner)
    .map(([field, type]) => `\`${field}\` (${typeText(type)})`)
    .join(', ')}.`
}

const bodyType = ({ content = {} }: Body) =>
  Object.entries(content)
    .map(([type, { schema }]) => (type === 'application/json' ? '' : `\`${type}\` `) + (schema ? typeText(schema) : ''))
    .join(' or ')

function typeText(schema: Schema): string {
  if (schema.$ref) return schema.$ref.split('/').at(-1)!
  if (schema.enum) return schema.enum.map((value) => `\`${String(value)}\``).join(', ')
  const either = schema.anyOf ?? schema.oneOf
  if (either) return either.map(typeText).join(' or ')
  if (schema.items) return `list of ${typeText(schema.items)}${rangeText(schema)}`
  const type = [schema.type ?? 'any'].flat().join(' or ')
  return `${type}${schema.format && schema.format !== 'int64' ? ` (${schema.format})` : ''}${rangeText(schema)}`
}

function rangeText({ minimum, maximum, minLength, maxLength, default: preset }: Schema): string {
  const range = (from: unknown, to: unknown, unit: string) =>
    from === undefined && to === undefined ? '' : `, ${from ?? ''}…${to ?? ''}${unit}`
  const rule = `${range(minimum, maximum, '')}${range(minLength, maxLength, ' characters')}`
  return preset === undefined ? rule : `${rule}, default ${String(preset)}`
}

const cell = (text: string) => text.replaceAll('\n', ' ').replaceAll('|', '\\|')
const row = (...cells: string[]) => `| ${cells.join(' | ')} |`
const table = (heads: string[], rows: string[]) =>
  [row(...heads), `|${'---|'.repeat(heads.length)}`, ...rows].join('\n')
