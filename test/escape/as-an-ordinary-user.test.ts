// tier: whole, because it attacks the confinement from many sides; as-this-user.test.ts stays in the gate
import { tryAll } from './attempts.ts';

tryAll('an ordinary user', ['', 'namespaces', 'landlock', 'seccomp']);
