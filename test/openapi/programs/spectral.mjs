// Prints the findings of spectral's recommended rules in the document, as JSON: the rule and the place of each.
import { readFileSync } from 'node:fs';
import spectral from '@stoplight/spectral-core';
import rulesets from '@stoplight/spectral-rulesets';

const linter = new spectral.Spectral();
linter.setRuleset({ extends: [[rulesets.oas, 'recommended']] });
const found = await linter.run(JSON.parse(readFileSync('openapi.json', 'utf8')));
process.stdout.write(JSON.stringify(found.map(({ code, message, path }) => ({ code, message, path }))));
