// The threads of an engine. Such a thread ends before its engine does: a call on it needs no share
// of the engine, and may not end it.
#pragma once

namespace shima::lapi {

// The Engine whose thread the calling thread is, or null.
inline thread_local const void* engine_of_thread = nullptr;

}  // namespace shima::lapi
