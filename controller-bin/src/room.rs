//! Makes the Lua side's dictionaries as large as what they have to hold.

use lua_sync_client::Room;
use nginx_render::Renderer;

/// How much larger than its content a dictionary is to be: old and new texts of a change stand side by side.
const TO_CHANGE: u64 = 2;

/// Has files that are rendered from now on make room for so much. Dictionaries do not become smaller again: one whose
/// size changes is emptied.
pub(crate) fn reserve(renderer: &mut Renderer, room: Room) {
    for (dictionary, bytes) in room.dictionaries() {
        renderer.reserve_dict(dictionary, bytes.saturating_mul(TO_CHANGE));
    }
}
