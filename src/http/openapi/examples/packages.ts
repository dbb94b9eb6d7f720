/** Examples of the packages of a workspace. */
import type { AddedPackages, WorkspacePackage, WorkspacePackageList } from '#src/contract/wire/packages.ts';
import { AT, NOTEBOOK_ID } from './example-values.ts';

const seaborn: WorkspacePackage = {
  name: 'seaborn',
  requirement: 'seaborn>=0.13',
  createdBy: 'ada@example.com',
  createdAt: AT,
};
const list: WorkspacePackageList = {
  items: [seaborn],
  enabled: true,
  installation: {
    requirements: ['scikit-learn'],
    startedAt: AT,
    text: 'installing joblib 1.5.2, scikit-learn 1.7.2',
    error: null,
  },
};
const added: AddedPackages = {
  items: [seaborn],
  installed: [{ name: 'seaborn', version: '0.13.2' }],
  openSessions: [NOTEBOOK_ID],
};

export const PACKAGES_EXAMPLES = { WorkspacePackageList: list, AddedPackages: added };
