// Names of tables and columns as SQL takes them.

/** A name as SQL takes it, whatever is in it. */
export const identifier = (name: string) => `"${name.replaceAll('"', '""')}"`

export const qualified = (schema: string, name: string) => `${identifier(schema)}.${identifier(name)}`
