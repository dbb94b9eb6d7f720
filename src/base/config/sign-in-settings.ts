import { groupRoles, integer, issuer, path, pattern, seconds, signInParameters } from './kinds.ts';
import { optional, setting } from './setting.ts';

const DAY_S = 86_400;

/** How people sign in with a browser. In the order of the documentation. */
export const SIGN_IN_SETTINGS = {
  signInIdleS: setting({
    env: 'TROUPE_SIGN_IN_IDLE_S',
    kind: seconds(1, 365 * DAY_S),
    default: String(DAY_S / 2),
    unit: 's',
    description: 'Time without activity after which a person who has signed in with a browser is signed out.',
  }),
  signInMaxS: setting({
    env: 'TROUPE_SIGN_IN_MAX_S',
    kind: seconds(1, 365 * DAY_S),
    default: String(7 * DAY_S),
    unit: 's',
    description:
      'Time after a sign-in with a browser at which the person must sign in again, even if active.',
  }),
  tokenMaxAgeDays: setting({
    env: 'TROUPE_TOKEN_MAX_AGE_DAYS',
    kind: integer(0, 36_500),
    default: '0',
    unit: 'days',
    description:
      'Longest life of a new access token. A token that is requested without an expiry gets this life; a request for a longer life is refused. Earlier tokens and the first token keep their expiry. 0: no limit.',
  }),
  oidcIssuer: optional({
    env: 'TROUPE_OIDC_ISSUER',
    kind: issuer,
    description:
      'Issuer of the identity provider with which people sign in (OpenID Connect), exactly as its discovery document names it. Unset: people sign in with access tokens only.',
  }),
  oidcClientId: optional({
    env: 'TROUPE_OIDC_CLIENT_ID',
    kind: pattern(/^[\x21-\x7e]{1,256}$/, '1 to 256 visible ASCII characters'),
    description:
      'Client id of this server at the identity provider. Register `<address of the server>/sign-in/callback` there as the redirect address.',
  }),
  oidcClientSecretFile: optional({
    env: 'TROUPE_OIDC_CLIENT_SECRET_FILE',
    kind: path,
    description:
      'File with the secret of this server at the identity provider. Unset: a client without a secret.',
  }),
  oidcName: setting({
    env: 'TROUPE_OIDC_NAME',
    kind: pattern(/^[^\p{Cc}]{1,60}$/u, '1 to 60 characters on one line'),
    default: 'single sign-on',
    description: 'Name of the identity provider on the page for signing in.',
  }),
  oidcScopes: setting({
    env: 'TROUPE_OIDC_SCOPES',
    kind: pattern(
      /^openid( [\x21\x23-\x5b\x5d-\x7e]{1,100}){0,20}$/,
      'scopes separated by spaces, of which the first is openid',
    ),
    default: 'openid profile email offline_access',
    description:
      'Scopes that the server asks the identity provider for. With these scopes, the provider must issue a refresh token.',
  }),
  oidcParameters: setting({
    env: 'TROUPE_OIDC_PARAMETERS',
    kind: signInParameters,
    default: 'none',
    description:
      'Further query parameters of the sign-in address at the provider. Google, for example, issues a refresh token only with `access_type=offline&prompt=consent`.',
  }),
  oidcUserClaim: setting({
    env: 'TROUPE_OIDC_USER_CLAIM',
    kind: pattern(/^[\w:./-]{1,200}$/, 'the name of a claim'),
    default: 'email',
    description:
      'The claim whose value becomes the id of the user on this server. With `email`, the provider must have verified the address. A user whom an owner has added under that address is the same user.',
  }),
  oidcGroupsClaim: setting({
    env: 'TROUPE_OIDC_GROUPS_CLAIM',
    kind: pattern(/^[\w:./-]{1,200}$/, 'the name of a claim'),
    default: 'groups',
    description:
      'The claim with the groups of a person. Dots separate the members of nested claims, as in `realm_access.roles`.',
  }),
  oidcRoles: setting({
    env: 'TROUPE_OIDC_ROLES',
    kind: groupRoles,
    default: 'none',
    description:
      'The workspaces and roles of groups. People are members of the workspaces of a group as long as they are in the group. Several groups with one workspace give the highest of their roles. Everybody whom the provider signs in belongs to the group `*`.',
  }),
  oidcCheckS: setting({
    env: 'TROUPE_OIDC_CHECK_S',
    kind: seconds(1, 600), // sessions end after 15 minutes without an answer
    default: '30',
    unit: 's',
    description:
      'Time between two questions to the identity provider about each person who has signed in through the provider.',
  }),
} as const;
