import '@fontsource-variable/inter/wght.css';
import '@fontsource-variable/jetbrains-mono/wght.css';
import './style/tokens.css';
import './style/base.css';
import { mount } from 'svelte';
import App from './App.svelte';
import { tauriTransport } from './lib/transport';

const target = document.getElementById('app');
if (target) mount(App, { target, props: { transport: tauriTransport() } });
