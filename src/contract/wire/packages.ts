/** The packages that all notebooks of a workspace have. */
import Type from 'typebox';
import { ONE_LINE } from './patterns.ts';
import { closed, nullable, Timestamp, type Wire } from './shape.ts';

const RequirementSchema = Type.String({
  minLength: 1,
  maxLength: 300,
  pattern: ONE_LINE,
  description: 'A requirement, as in `seaborn>=0.13` (PEP 508). Addresses and paths are refused.',
});

const WorkspacePackageSchema = Type.Object(
  {
    name: Type.String({
      description: 'The normal form of the name of the package: lower case, with hyphens.',
    }),
    requirement: Type.String(),
    createdBy: Type.String({ description: 'The id of the user who added the package.' }),
    createdAt: Timestamp,
  },
  { $id: 'WorkspacePackage', ...closed },
);
export type WorkspacePackage = Wire<typeof WorkspacePackageSchema>;

const InstallationSchema = Type.Object(
  {
    requirements: Type.Array(Type.String()),
    startedAt: Timestamp,
    text: Type.String({ description: 'The current step, for people.' }),
    error: nullable(Type.String({ description: 'Why the installation failed; null while it is under way.' })),
  },
  { $id: 'PackageInstallation', ...closed },
);
export type PackageInstallation = Wire<typeof InstallationSchema>;

export const WorkspacePackageListSchema = Type.Object(
  {
    items: Type.Array(WorkspacePackageSchema, { description: 'All packages, by name.' }),
    enabled: Type.Boolean({ description: 'Whether this server installs packages.' }),
    installation: nullable(InstallationSchema),
  },
  { $id: 'WorkspacePackageList', ...closed },
);
export type WorkspacePackageList = Wire<typeof WorkspacePackageListSchema>;

export const AddPackagesSchema = Type.Object(
  { requirements: Type.Array(RequirementSchema, { minItems: 1, maxItems: 50 }) },
  { $id: 'AddPackages', ...closed, examples: [{ requirements: ['seaborn>=0.13', 'scikit-learn'] }] },
);

export const AddPackagesQuery = Type.Object(
  {
    wait: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 300,
        default: 50,
        description: 'The most seconds to wait for the installation.',
      }),
    ),
  },
  closed,
);

export const AddedPackagesSchema = Type.Object(
  {
    items: Type.Array(WorkspacePackageSchema, { description: 'All packages of the workspace, by name.' }),
    installed: Type.Array(
      Type.Object({ name: Type.String(), version: Type.String() }, { $id: 'InstalledPackage', ...closed }),
      {
        description:
          'All packages that notebooks of the workspace have in addition to those of the server, dependencies included.',
      },
    ),
    openSessions: Type.Array(Type.String(), {
      description:
        'Sessions whose kernel was started before the installation. They get the packages when they are opened again.',
    }),
  },
  { $id: 'AddedPackages', ...closed },
);
export type AddedPackages = Wire<typeof AddedPackagesSchema>;
