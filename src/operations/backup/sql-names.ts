// Quotes names of tables and columns for SQL.

/** A quoted name, with any characters in it. */
export const identifier = (name: string) => `"${name.replaceAll('"', '""')}"`

export const qualified = (schema: string, name: string) => `${identifier(schema)}.${identifier(name)}`
