/** The time, once a second, for whatever shows how long something has taken. */
class Clock {
  now = $state(new Date());

  /** Ticks until the returned function is called. */
  run(): () => void {
    const timer = setInterval(() => (this.now = new Date()), 1000);
    return () => clearInterval(timer);
  }
}

export const clock = new Clock();
