import { tryAll } from './attempts.ts';

tryAll('this user', ['', 'namespaces', 'landlock', 'seccomp']);
