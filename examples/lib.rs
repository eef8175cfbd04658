//! Runnable programs that embed the crates: see the files beside this one, each of which says how it is started.
