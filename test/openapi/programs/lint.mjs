// Prints the findings of redocly's recommended rules in the document, as JSON.
import { readFileSync } from 'node:fs';
import { createConfig, lintFromString } from '@redocly/openapi-core';

const config = await createConfig({ extends: ['recommended'] });
const source = readFileSync('openapi.json', 'utf8');
const problems = await lintFromString({ source, config, absoluteRef: 'openapi.json' });
const found = problems.map(({ severity, ruleId, message, location }) => ({
  severity,
  ruleId,
  message,
  at: location[0]?.pointer,
}));
process.stdout.write(JSON.stringify(found));
