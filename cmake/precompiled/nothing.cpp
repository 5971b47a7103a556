// The targets that own the precompiled headers (ShimaPrecompiled.cmake) need a source.
int main() { return 0; }
