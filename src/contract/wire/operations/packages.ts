import {
  AddedPackagesSchema,
  AddPackagesQuery,
  AddPackagesSchema,
  WorkspacePackageListSchema,
} from '../packages.ts';
import { declareOperations } from './operation.ts';

/** The packages of a workspace. */
export const PACKAGE_OPERATIONS = declareOperations({
  listPackages: {
    responses: { 200: { description: 'All packages.', schema: WorkspacePackageListSchema } },
  },
  addPackages: {
    query: AddPackagesQuery,
    body: AddPackagesSchema,
    responses: {
      200: { description: 'The packages were added.', schema: AddedPackagesSchema },
      202: { description: 'The packages are being installed.', schema: WorkspacePackageListSchema },
    },
  },
  removePackage: {
    responses: { 204: { description: 'The package was removed.' } },
  },
});
