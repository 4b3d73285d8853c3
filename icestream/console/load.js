/** Answers of the worker inside a component: loading, there, or an error; asked again when that makes sense. */
import { get } from "./api.js";
import { useCallback, useEffect, useRef, useState } from "./dom.js";

/**
 * @param {string | null} path below `/console/api/`; null asks nothing
 * @param {Record<string, any>} [query]
 * @param {{every?: number}} [options] ask again after so many milliseconds, while the page is seen
 * @returns {{data: any, error: any, isLoading: boolean, again: () => void}}
 */
export function useAnswer(path, query = {}, { every = 0 } = {}) {
  const wanted = path === null ? "" : JSON.stringify([path, query]);
  const [found, setFound] = useState({ wanted: "", data: null, error: null });
  const [turn, setTurn] = useState(0);
  const latest = useRef(found);
  latest.current = found;
  useEffect(() => {
    if (path === null) return undefined;
    const gone = new AbortController();
    let timer = 0;
    const ask = async () => {
      if (document.hidden && latest.current.data) {
        timer = setTimeout(ask, every || 1000);
        return;
      }
      try {
        const data = await get(path, query, { signal: gone.signal });
        setFound({ wanted, data, error: null });
      } catch (error) {
        if (gone.signal.aborted) return;
        // What was there stays, as long as it is about the same thing.
        setFound((before) => ({ wanted, data: before.wanted === wanted ? before.data : null, error }));
      }
      if (every && !gone.signal.aborted) timer = setTimeout(ask, every);
    };
    ask();
    return () => {
      gone.abort();
      clearTimeout(timer);
    };
  }, [wanted, turn, every]);
  const again = useCallback(() => setTurn((before) => before + 1), []);
  const isOurs = found.wanted === wanted;
  return { data: isOurs ? found.data : null, error: isOurs ? found.error : null, isLoading: !isOurs && path !== null, again };
}
