import { render } from 'preact';
import { Console } from './console.tsx';

const root = document.getElementById('console');
if (root !== null) render(<Console />, root);
