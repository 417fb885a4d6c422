/** The system's dialog for picking a file or folder. */
import { open } from '@tauri-apps/plugin-dialog';

export type Pick = 'workflow' | 'file' | 'folder';

/** The path that the person picked; null when they closed the dialog. */
export async function choosePath(pick: Pick): Promise<string | null> {
  switch (pick) {
    case 'workflow':
      return open({
        title: 'Choose a workflow',
        filters: [{ name: 'Workflow', extensions: ['toml'] }],
      });
    case 'file':
      return open({ title: 'Choose a file' });
    case 'folder':
      return open({ title: 'Choose a folder', directory: true });
  }
}
