// Compares responses with the schemas of an OpenAPI document; supports the part of JSON Schema that Stripe's document uses.

interface Schema {
  $ref?: string
  anyOf?: Schema[]
  type?: string
  nullable?: boolean
  enum?: unknown[]
  required?: string[]
  properties?: Record<string, Schema>
  additionalProperties?: boolean | Schema
  items?: Schema
  maxLength?: number
}

interface Document {
  components: { schemas: Record<string, Schema> }
  paths: Record<
    string,
    Record<string, { responses: Record<string, { content?: { 'application/json'?: { schema: Schema } } }> }>
  >
}

/** Every deviation of a response from the document; a path that is not in the document is one, too. */
export function departures(
  document: unknown,
  answer: { method: string; path: string; status: number; body: unknown },
): string[] {
  const { paths, components } = document as Document
  const template = templateOf(Object.keys(paths), answer.path)
  const operation = template === undefined ? undefined : paths[template]?.[answer.method.toLowerCase()]
  const response = operation?.responses[String(answer.status)] ?? operation?.responses['default']
  const schema = response?.content?.['application/json']?.schema
  if (!schema) return [`${answer.method} ${answer.path} is not in the document`]
  return compare(schema, answer.body, `${answer.method} ${template} ${answer.status}`, components.schemas)
}

/** Paths without parameters come first. */
function templateOf(templates: string[], path: string): string | undefined {
  const fitting = templates.filter((template) =>
    new RegExp(`^${template.replaceAll(/\{[^}]+\}/g, '[^/]+')}$`).test(path),
  )
  return fitting.sort((one, other) => one.split('{').length - other.split('{').length)[0]
}

function compare(schema: Schema, value: unknown, at: string, schemas: Record<string, Schema>): string[] {
  if (schema.$ref) return compare(schemas[schema.$ref.split('/').at(-1)!]!, value, at, schemas)
  if (value === null) return schema.nullable ? [] : [`${at} is null`]
  if (schema.anyOf) {
    const all = schema.anyOf.map((one) => compare(one, value, at, schemas))
    return all.find((found) => found.length === 0) ?? all.sort((one, other) => one.length - other.length)[0]!
  }
  if (schema.enum && !schema.enum.includes(value)) return [`${at} is ${JSON.stringify(value)}`]
  if (schema.type && !isOfType(schema.type, value)) return [`${at} is no ${schema.type}: ${JSON.stringify(value)}`]
  if (schema.maxLength !== undefined && String(value).length > schema.maxLength) return [`${at} is too long`]
  if (Array.isArray(value)) {
    return value.flatMap((item, n) => (schema.items ? compare(schema.items, item, `${at}[${n}]`, schemas) : []))
  }
  return typeof value === 'object' ? compareFields(schema, value as Record<string, unknown>, at, schemas) : []
}

function compareFields(
  schema: Schema,
  value: Record<string, unknown>,
  at: string,
  schemas: Record<string, Schema>,
): string[] {
  const missing = (schema.required ?? []).filter((name) => !(name in value)).map((name) => `${at}.${name} is missing`)
  const others = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined
  const wrong = Object.entries(value).flatMap(([name, field]) => {
    const declared = schema.properties?.[name] ?? others
    return declared ? compare(declared, field, `${at}.${name}`, schemas) : []
  })
  return [...missing, ...wrong]
}

function isOfType(type: string, value: unknown): boolean {
  if (type === 'integer') return Number.isInteger(value)
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return typeof value === 'object' && !Array.isArray(value)
  return typeof value === type
}
