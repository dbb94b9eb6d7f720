import { here, place } from '../state/route.ts';
import { isMenuOpen } from './top-bar.tsx';
import { VIEWS } from './views.ts';

const GROUPS = ['Now', 'Work', 'Administration'] as const;

/** The list of views. On narrow screens it opens from the button in the top bar. */
export function Navigation() {
  const { view } = place.value;
  return (
    <nav class={isMenuOpen.value ? 'open' : ''} aria-label="Views" id="views">
      {GROUPS.map((group) => {
        const views = VIEWS.filter((one) => one.group === group);
        return views.length === 0 ? null : (
          <section key={group}>
            <h2>{group}</h2>
            <ul>
              {views.map(({ name, title }) => (
                <li key={name}>
                  <a
                    href={here([name])}
                    aria-current={name === view ? 'page' : undefined}
                    onClick={() => {
                      isMenuOpen.value = false;
                    }}
                  >
                    {title}
                  </a>
                </li>
              ))}
            </ul>
          </section>
        );
      })}
    </nav>
  );
}
