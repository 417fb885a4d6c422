/** How the window looks. Kept in the web view's storage: losing it loses nothing but looks. */
export type Theme = 'system' | 'light' | 'dark';
export type Pane = 'sessions' | 'run';

const KEY = 'correx.appearance';

/** Below this width the run is a drawer. Keep in step with the media queries. */
const NARROW = '(max-width: 899px)';

class Appearance {
  theme = $state<Theme>('system');
  /** Panes that are shown beside the talk when the window is wide. */
  sessionsShown = $state(true);
  runShown = $state(true);
  /** Whether the drawer is open when the window is narrow. */
  drawerOpen = $state(false);
  narrow = $state(false);
  #systemDark = $state(false);

  /** Reads what was kept and follows the system. Returns what undoes it. */
  watch(): () => void {
    this.#read();
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const narrow = matchMedia(NARROW);
    const follow = () => {
      this.#systemDark = dark.matches;
      this.narrow = narrow.matches;
      if (!narrow.matches) this.drawerOpen = false;
    };
    follow();
    dark.addEventListener('change', follow);
    narrow.addEventListener('change', follow);
    return () => {
      dark.removeEventListener('change', follow);
      narrow.removeEventListener('change', follow);
    };
  }

  /** The theme that is really shown. */
  get shownTheme(): 'light' | 'dark' {
    if (this.theme !== 'system') return this.theme;
    return this.#systemDark ? 'dark' : 'light';
  }

  get runVisible(): boolean {
    return this.narrow ? this.drawerOpen : this.runShown;
  }

  setTheme(theme: Theme): void {
    this.theme = theme;
    this.#keep();
  }

  toggle(pane: Pane): void {
    if (pane === 'sessions') this.sessionsShown = !this.sessionsShown;
    else if (this.narrow) this.drawerOpen = !this.drawerOpen;
    else this.runShown = !this.runShown;
    this.#keep();
  }

  showRun(): void {
    if (this.narrow) this.drawerOpen = true;
    else this.runShown = true;
  }

  #read(): void {
    try {
      const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? '{}');
      if (typeof kept !== 'object' || kept === null) return;
      const { theme, sessions, run } = kept as Record<string, unknown>;
      if (theme === 'light' || theme === 'dark' || theme === 'system') this.theme = theme;
      if (typeof sessions === 'boolean') this.sessionsShown = sessions;
      if (typeof run === 'boolean') this.runShown = run;
    } catch {
      // Unreadable looks are the default looks.
    }
  }

  #keep(): void {
    const kept = { theme: this.theme, sessions: this.sessionsShown, run: this.runShown };
    try {
      localStorage.setItem(KEY, JSON.stringify(kept));
    } catch {
      // Storage may be off; the looks then last as long as the window.
    }
  }
}

export const appearance = new Appearance();
