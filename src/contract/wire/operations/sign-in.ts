import Type from 'typebox';
import { closed, EmptyBodySchema, oneOf, type Wire } from '../shape.ts';
import { declareOperations } from './operation.ts';
import { READ_CONDITION } from './parts.ts';

/** The headers from which the name of a session's cookie follows, and the cookies themselves. */
export const COOKIE_HEADERS = {
  host: 'The name of the server.',
  'x-forwarded-proto': 'The scheme of the request, from a proxy.',
  cookie: 'The cookies.',
} as const;

const SignInOptionsSchema = Type.Object(
  {
    provider: Type.Union([Type.String(), Type.Null()], {
      description: 'The name of the identity provider with which people sign in; null without one.',
    }),
  },
  { $id: 'SignInOptions', ...closed },
);
export type SignInOptions = Wire<typeof SignInOptionsSchema>;

const SignedOutSchema = Type.Object(
  {
    next: Type.Union([Type.String(), Type.Null()], {
      description:
        'The page of the identity provider at which the sign-out continues; null when it is complete.',
    }),
  },
  { $id: 'SignedOut', ...closed },
);
export type SignedOut = Wire<typeof SignedOutSchema>;

const BegunCommandLineSchema = Type.Object(
  {
    secret: Type.String({ description: 'The secret with which the program asks for the outcome.' }),
    code: Type.String({ description: 'The code that the person types.' }),
    url: Type.String({ description: 'The page on which the person types the code.' }),
    expiresAt: Type.String(),
    intervalS: Type.Integer({
      description: 'How many seconds the program must wait before it asks again for the outcome.',
    }),
  },
  { $id: 'BegunCommandLine', ...closed },
);
export type BegunCommandLine = Wire<typeof BegunCommandLineSchema>;

const CommandLineOutcomeSchema = Type.Object(
  {
    status: oneOf(['waiting', 'refused', 'ended', 'confirmed']),
    token: Type.Optional(Type.String({ description: 'The access token, once.' })),
    userId: Type.Optional(Type.String()),
    workspaceId: Type.Optional(Type.String()),
    expiresAt: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  },
  { $id: 'CommandLineOutcome', ...closed },
);
export type CommandLineOutcome = Wire<typeof CommandLineOutcomeSchema>;

const AskingCommandLineSchema = Type.Object(
  { machine: Type.String(), address: Type.String(), expiresAt: Type.String() },
  { $id: 'AskingCommandLine', ...closed },
);
export type AskingCommandLine = Wire<typeof AskingCommandLineSchema>;

const word = () => Type.Optional(Type.String({ maxLength: 8192 }));

/**
 * The parameters with which providers send a browser back: parameters of the protocol, and additions of some
 * providers.
 */
const ProviderAnswer = Type.Object(
  {
    code: word(),
    state: word(),
    iss: word(),
    error: word(),
    error_description: word(),
    error_uri: word(),
    error_subcode: word(),
    session_state: word(),
    scope: word(),
    authuser: word(),
    hd: word(),
    prompt: word(),
    client_info: word(),
  },
  closed,
);

/** Signing in and out with a browser. */
export const SIGN_IN_OPERATIONS = declareOperations({
  getSignInPage: {
    headers: READ_CONDITION,
    responses: {
      200: { description: 'The page.', contentType: 'text/html' },
      304: { description: 'The browser already has this page.' },
    },
  },
  getSignInOptions: {
    responses: { 200: { description: 'The ways to sign in.', schema: SignInOptionsSchema } },
  },
  beginProviderSignIn: {
    headers: COOKIE_HEADERS,
    query: Type.Object(
      { to: Type.String({ maxLength: 2000, default: '', description: 'The page to open afterwards.' }) },
      closed,
    ),
    responses: {
      303: {
        description: 'A redirect to the identity provider.',
        headers: { Location: 'Its page.', 'set-cookie': 'The attempt.' },
      },
    },
  },
  completeProviderSignIn: {
    headers: COOKIE_HEADERS,
    query: ProviderAnswer,
    responses: {
      303: {
        description: 'The requested page.',
        headers: { Location: 'The page.', 'set-cookie': 'The session.' },
      },
    },
  },
  signIn: {
    headers: COOKIE_HEADERS,
    body: EmptyBodySchema,
    optionalBody: true,
    responses: { 204: { description: 'The session has begun.', headers: { 'set-cookie': 'The session.' } } },
  },
  signOut: {
    headers: COOKIE_HEADERS,
    body: EmptyBodySchema,
    optionalBody: true,
    responses: { 200: { description: 'The session has ended.', schema: SignedOutSchema } },
  },
  beginCommandLineSignIn: {
    headers: COOKIE_HEADERS,
    body: Type.Object(
      {
        machine: Type.String({
          minLength: 1,
          maxLength: 100,
          pattern: '^[^\\u0000-\\u001f\\u007f-\\u009f]+$',
        }),
      },
      closed,
    ),
    responses: { 201: { description: 'The codes.', schema: BegunCommandLineSchema } },
  },
  fetchCommandLineSignIn: {
    body: Type.Object({ secret: Type.String({ minLength: 1, maxLength: 100 }) }, closed),
    responses: { 200: { description: 'The outcome.', schema: CommandLineOutcomeSchema } },
  },
  getCommandLineSignIn: {
    responses: { 200: { description: 'The program that waits.', schema: AskingCommandLineSchema } },
  },
  decideCommandLineSignIn: {
    body: Type.Object({ confirm: Type.Boolean() }, closed),
    responses: { 204: { description: 'The decision was stored; the program learns it when it asks next.' } },
  },
  signOutEverywhere: {
    headers: COOKIE_HEADERS,
    body: EmptyBodySchema,
    optionalBody: true,
    responses: { 200: { description: 'The sessions have ended.', schema: SignedOutSchema } },
  },
});
