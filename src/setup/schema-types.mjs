// TypeScript types of JSON schemas, for the package of the client, because its users have no schema
// library.

/** Collects the declarations of the schemas that it prints. A schema with an `$id` becomes a type of that name. */
export class SchemaTypes {
  #declarations = new Map();

  /** Returns the text of all declarations so far. */
  get text() {
    return [...this.#declarations.values()].join('\n');
  }

  /** Declares the type `name` as `text`, unless there is a type with this name. */
  declare(name, text, comment = '') {
    if (!this.#declarations.has(name))
      this.#declarations.set(name, `${comment}export type ${name} = ${text};\n`);
  }

  /** Returns the type of the values that `schema` describes. */
  of(schema) {
    const { $id: name } = schema;
    if (name === undefined) return this.#structure(schema);
    if (!this.#declarations.has(name)) {
      this.#declarations.set(name, ''); // a schema that contains itself
      this.#declarations.set(name, `${commentOf(schema)}export type ${name} = ${this.#structure(schema)};\n`);
    }
    return name;
  }

  /** Returns the members of an object schema; `isPartial` makes all of them optional. */
  members({ properties = {}, required = [] }, { isPartial = false, leftOut = [] } = {}) {
    return Object.entries(properties)
      .filter(([name]) => !leftOut.includes(name))
      .map(([name, member]) => {
        const isOptional = isPartial || !required.includes(name);
        const type = `${this.of(member)}${isPartial ? ' | undefined' : ''}`;
        return `${commentOf(member)}readonly ${JSON.stringify(name)}${isOptional ? '?' : ''}: ${type};`;
      })
      .join('\n');
  }

  #structure(schema) {
    if ('const' in schema) return JSON.stringify(schema.const);
    if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(' | ');
    const variants = schema.anyOf ?? schema.oneOf;
    if (variants !== undefined) return variants.map((variant) => this.of(variant)).join(' | ');
    if (schema.allOf !== undefined) return schema.allOf.map((part) => `(${this.of(part)})`).join(' & ');
    switch (schema.type) {
      case 'string':
      case 'boolean':
      case 'null':
        return schema.type;
      case 'integer':
      case 'number':
        return 'number';
      case 'array':
        return `readonly (${this.of(schema.items ?? {})})[]`;
      case 'object':
        return this.#object(schema);
      default:
        return 'unknown';
    }
  }

  #object(schema) {
    if (typeof schema.additionalProperties === 'object')
      return `Readonly<Record<string, ${this.of(schema.additionalProperties)}>>`;
    if (schema.properties === undefined) return 'Readonly<Record<string, unknown>>';
    const members = this.members(schema);
    return members === '' ? 'Readonly<Record<string, never>>' : `{\n${members}\n}`;
  }
}

function commentOf({ description, deprecated }) {
  const lines = [description, deprecated === true ? '@deprecated' : undefined].filter(Boolean);
  return lines.length === 0 ? '' : `/** ${lines.join('\n').replaceAll('*/', '* /')} */\n`;
}
