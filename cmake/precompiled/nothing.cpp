// The targets that own the precompiled headers (ShimaPrecompiled.cmake) need a source.
namespace {}
