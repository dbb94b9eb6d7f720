import { tryAll } from './attempts.ts';

tryAll('an ordinary user', ['', 'namespaces', 'landlock', 'seccomp']);
