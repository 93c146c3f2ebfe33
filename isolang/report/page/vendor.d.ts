// What the scripts use of the library in ../vendor, which defines one global.
declare const dagre: any;
