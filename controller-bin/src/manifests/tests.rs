//! The directory as a whole, with real files and real notifications.

use std::{
    fs,
    io::Write,
    sync::atomic::{AtomicUsize, Ordering},
};

use ingress_model::ObjectName;
use tempfile::TempDir;

use super::{pending::GONE, *};
use crate::store::Change;

/// How long anything may take that is waited for, on a machine that has much else to do.
const SOON: Duration = Duration::from_mins(2);

/// A directory, and the store that follows it.
struct Followed {
    directory: TempDir,
    store: Arc<Store>,
    _manifests: Manifests,
}

impl Followed {
    fn new(files: &[(&str, &str)]) -> Self {
        Self::by(files, Path::to_owned)
    }

    /// Follows the directory by the name that `named` gives it.
    fn by(files: &[(&str, &str)], named: impl Fn(&Path) -> PathBuf) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(directory.path().join(name), text).unwrap();
        }
        let store = Arc::new(Store::awaiting([LIST.to_owned()]));
        let class = AssumedClass {
            name: "nginx".into(),
            controller: "example.test/ours".into(),
        };
        let manifests =
            Manifests::start(&named(directory.path()), class, Arc::clone(&store)).unwrap();
        Self {
            directory,
            store,
            _manifests: manifests,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// What Services there are once `condition` holds of them.
    fn services_when(&self, condition: impl Fn(&[String]) -> bool) -> Vec<String> {
        let deadline = Instant::now() + SOON;
        loop {
            let names = self.services();
            if condition(&names) {
                return names;
            }
            assert!(Instant::now() < deadline, "still {names:?}");
            thread::yield_now();
        }
    }

    fn services(&self) -> Vec<String> {
        let snapshot = self.store.snapshot();
        snapshot
            .services
            .iter()
            .map(|(name, _)| name.to_string())
            .collect()
    }

    /// Waits until everything written before was read: a further file shows.
    fn settle(&self) {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("settle-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.write(&format!("{name}.yaml"), &service(&name));
        self.services_when(|names| names.contains(&format!("default/{name}")));
    }
}

fn service(name: &str) -> String {
    format!("apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\n")
}

fn ingress(name: &str, extra: &str) -> String {
    format!("apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: {name}{extra}}}\n")
}

#[test]
fn files_that_come_change_and_go_are_followed() {
    let followed = Followed::new(&[("a.yaml", &service("a")), ("notes.txt", "no: manifest")]);
    assert!(followed.store.is_ready());
    assert_eq!(followed.services(), ["default/a"]);

    followed.write("b.yml", &service("b"));
    followed.services_when(|names| names == ["default/a", "default/b"]);

    fs::write(followed.path(".staged"), service("c")).unwrap();
    fs::rename(followed.path(".staged"), followed.path("b.yml")).unwrap();
    followed.services_when(|names| names == ["default/a", "default/c"]);

    fs::remove_file(followed.path("a.yaml")).unwrap();
    followed.services_when(|names| names == ["default/c"]);

    fs::create_dir(followed.path("below")).unwrap();
    followed.write("below/d.yaml", &service("d"));
    followed.services_when(|names| names == ["default/c", "default/d"]);

    fs::rename(followed.path("below"), followed.path(".below")).unwrap();
    followed.services_when(|names| names == ["default/c"]);
}

#[test]
fn a_file_that_is_replaced_is_never_seen_by_halves() {
    let all = |letter: char| -> String {
        let names = (0..200).map(|number| service(&format!("{letter}{number}")));
        names.collect::<Vec<_>>().join("---\n")
    };
    let followed = Followed::new(&[("all.yaml", &all('a'))]);
    for letter in ['b', 'c', 'd'] {
        fs::write(followed.path(".staged"), all(letter)).unwrap();
        fs::rename(followed.path(".staged"), followed.path("all.yaml")).unwrap();
        followed.services_when(|names| {
            assert_eq!(names.len(), 200);
            let first = names.first().map(|name| name.chars().nth(8));
            assert!(names.iter().all(|name| Some(name.chars().nth(8)) == first));
            first == Some(Some(letter))
        });
    }
}

#[test]
fn a_file_that_is_being_written_is_not_read() {
    let text = [service("a"), service("b")].join("---\n");
    let followed = Followed::new(&[("two.yaml", &text)]);
    let mut slow = fs::File::create(followed.path("two.yaml")).unwrap();
    slow.write_all(service("c").as_bytes()).unwrap();
    // A new directory has everything looked through.
    fs::create_dir(followed.path("new")).unwrap();
    followed.write("new/d.yaml", &service("d"));
    let names = followed.services_when(|names| names.contains(&"default/d".to_owned()));
    assert_eq!(names, ["default/a", "default/b", "default/d"]);
    drop(slow);
    followed.services_when(|names| names == ["default/c", "default/d"]);
}

/// That no file lost what it said, although `change` takes it away some times for a moment. A round that takes longer than
/// a file may be away, since the machine has much else to do, shows nothing.
fn was_never_without(followed: &Followed, change: impl Fn(&Followed)) {
    const ROUNDS: usize = 7;
    let mut shown = 0;
    for _ in 0..100 {
        let _earlier = followed.store.take();
        let began = Instant::now();
        change(followed);
        let is_in_time = began.elapsed() < GONE;
        // What comes later is noticed later.
        followed.settle();
        let (names, (_, changes)) = (followed.services(), followed.store.take());
        if is_in_time {
            let gone = changes
                .iter()
                .filter(|change| change.verb == crate::store::Verb::Deleted);
            assert_eq!(gone.count(), 0, "{changes:?}");
            assert_eq!(names[..2], ["default/a", "default/b"]);
            shown += 1;
        }
        if shown == ROUNDS {
            return;
        }
    }
    assert!(shown > 0, "this machine is too busy to show anything");
}

#[test]
fn a_file_that_is_put_into_the_place_of_another_never_leaves_it_empty() {
    let text = format!("{}---\n{}", service("a"), service("b"));
    let followed = Followed::new(&[("x.yaml", &text)]);
    was_never_without(&followed, |followed| {
        for _ in 0..3 {
            fs::remove_file(followed.path("x.yaml")).unwrap();
            thread::sleep(Duration::from_millis(5));
            followed.write("x.yaml", &text);
        }
    });
    // The second writer empties the file when the first one has just closed it.
    was_never_without(&followed, |followed| {
        for _ in 0..3 {
            followed.write("x.yaml", &text);
            let mut file = fs::File::create(followed.path("x.yaml")).unwrap();
            thread::sleep(Duration::from_millis(5));
            file.write_all(text.as_bytes()).unwrap();
        }
    });
}

#[test]
fn an_object_that_goes_from_a_file_goes() {
    let text = format!("{}---\n{}", service("a"), service("b"));
    let followed = Followed::new(&[("x.yaml", &text)]);
    followed.write("x.yaml", &service("b"));
    followed.services_when(|names| names == ["default/b"]);
    followed.write("x.yaml", "");
    followed.services_when(<[String]>::is_empty);
}

#[test]
fn a_directory_that_is_made_anew_is_followed() {
    let followed = Followed::new(&[("a.yaml", &service("a"))]);
    for name in ["b", "c"] {
        fs::remove_dir_all(followed.directory.path()).unwrap();
        fs::create_dir(followed.directory.path()).unwrap();
        followed.write("x.yaml", &service(name));
        followed.services_when(|names| names == [format!("default/{name}")]);
        // It is watched, and not only looked through from time to time.
        followed.write("y.yaml", &service("y"));
        followed.services_when(|names| names.len() == 2);
        let later = format!("{name}-later");
        followed.write("x.yaml", &service(&later));
        followed.services_when(|names| names == [format!("default/{later}"), "default/y".into()]);
    }
}

#[test]
fn a_directory_swapped_by_its_link_is_read_anew() {
    // As the kubelet mounts ConfigMaps.
    let followed = Followed::new(&[]);
    for (version, name) in [("..1", "a"), ("..2", "b")] {
        fs::create_dir(followed.path(version)).unwrap();
        followed.write(&format!("{version}/x.yaml"), &service(name));
    }
    std::os::unix::fs::symlink("..1", followed.path("..data")).unwrap();
    std::os::unix::fs::symlink("..data/x.yaml", followed.path("x.yaml")).unwrap();
    followed.services_when(|names| names == ["default/a"]);
    std::os::unix::fs::symlink("..2", followed.path("..data_tmp")).unwrap();
    fs::rename(followed.path("..data_tmp"), followed.path("..data")).unwrap();
    followed.services_when(|names| names == ["default/b"]);
}

#[test]
fn a_broken_file_keeps_its_last_good_content() {
    let followed = Followed::new(&[("a.yaml", &service("a")), ("b.yaml", "kind: [")]);
    assert_eq!(followed.services(), ["default/a"]);
    followed.write(
        "a.yaml",
        "apiVersion: v1\nkind: Service\nmetadata: {name: [\n",
    );
    followed.settle();
    assert!(followed.services().contains(&"default/a".to_owned()));
    followed.write("a.yaml", &service("mended"));
    followed.services_when(|names| {
        names.contains(&"default/mended".to_owned()) && !names.contains(&"default/a".to_owned())
    });
}

#[test]
fn a_broken_document_takes_neither_the_others_nor_what_was_there() {
    const BROKEN: &str = "kind: Service\nmetadata: {name: [\n";
    let all = |documents: &[&str]| documents.join("---\n");
    let (a, b, c) = (service("a"), service("b"), service("c"));
    let followed = Followed::new(&[("x.yaml", &all(&[&a, BROKEN]))]);
    assert_eq!(followed.services(), ["default/a"]);

    followed.write("x.yaml", &all(&[&a, &b]));
    followed.services_when(|names| names == ["default/a", "default/b"]);

    // The second one may be any that was there, and the third one is new.
    followed.write("x.yaml", &all(&[BROKEN, &c]));
    let names = followed.services_when(|names| names.contains(&"default/c".to_owned()));
    assert_eq!(names, ["default/a", "default/b", "default/c"]);

    followed.write("x.yaml", &all(&[&b, &c]));
    followed.services_when(|names| names == ["default/b", "default/c"]);
}

#[test]
fn an_object_beside_a_broken_document_is_changed() {
    let with = |port: u16| format!("{}spec: {{ports: [{{port: {port}}}]}}\n", service("a"));
    let followed = Followed::new(&[("x.yaml", &with(1))]);
    followed.write("x.yaml", &format!("{}---\nkind: [\n", with(2)));
    let port = || {
        let snapshot = followed.store.snapshot();
        let service = snapshot.services.get(&ObjectName::new("default", "a"))?;
        Some(service.spec.as_ref()?.ports.as_ref()?.first()?.port)
    };
    let deadline = Instant::now() + SOON;
    while port() != Some(2) {
        assert!(Instant::now() < deadline, "{:?}", port());
        thread::yield_now();
    }
}

#[test]
fn the_last_file_by_name_holds_an_object_that_several_define() {
    let with = |port: u16| format!("{}spec: {{ports: [{{port: {port}}}]}}\n", service("a"));
    let followed = Followed::new(&[("1.yaml", &with(1)), ("2.yaml", &with(2))]);
    let port = || {
        let snapshot = followed.store.snapshot();
        let service = snapshot.services.get(&ObjectName::new("default", "a"))?;
        Some(service.spec.as_ref()?.ports.as_ref()?.first()?.port)
    };
    assert_eq!(port(), Some(2));
    fs::remove_file(followed.path("2.yaml")).unwrap();
    let deadline = Instant::now() + SOON;
    while port() != Some(1) {
        assert!(Instant::now() < deadline, "{:?}", port());
        thread::yield_now();
    }
}

#[test]
fn ingresses_without_date_are_in_the_order_of_the_files() {
    let dated = ingress("dated", ", creationTimestamp: '2020-01-01T00:00:00Z'");
    let two = format!("{}---\n{}", ingress("z", ""), ingress("a", ""));
    let followed = Followed::new(&[
        ("1.yaml", &two),
        ("0.yaml", &ingress("m", "")),
        ("00.yaml", &dated),
    ]);
    let snapshot = followed.store.snapshot();
    let mut order: Vec<_> = snapshot
        .ingresses
        .iter()
        .map(|(name, ingress)| {
            (
                ingress.metadata.creation_timestamp.clone().unwrap(),
                name.name(),
            )
        })
        .collect();
    order.sort();
    let names: Vec<_> = order.iter().map(|(_, name)| *name).collect();
    assert_eq!(names, ["m", "z", "a", "dated"]);
}

#[test]
fn an_ingress_without_date_that_goes_changes_no_other() {
    let followed = Followed::new(&[
        ("0.yaml", &ingress("first", "")),
        ("1.yaml", &ingress("second", "")),
        ("2.yaml", &ingress("third", "")),
    ]);
    let _earlier = followed.store.take();
    fs::rename(followed.path("0.yaml"), followed.path("0.txt")).unwrap();
    let deadline = Instant::now() + SOON;
    while followed.store.snapshot().ingresses.iter().count() > 2 {
        assert!(Instant::now() < deadline);
        thread::yield_now();
    }
    let changes = followed.store.take().1;
    let told: Vec<_> = changes.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["Ingress default/first deleted"]);
}

#[test]
fn a_class_is_assumed_only_where_none_is_defined() {
    let followed = Followed::new(&[]);
    let controllers = || -> Vec<_> {
        let snapshot = followed.store.snapshot();
        let classes = snapshot.ingress_classes.iter();
        classes
            .map(|(name, class)| {
                (
                    name.to_string(),
                    class.spec.clone().unwrap().controller.unwrap(),
                )
            })
            .collect()
    };
    let pair = |name: &str, controller: &str| (name.to_owned(), controller.to_owned());
    assert_eq!(controllers(), [pair("nginx", "example.test/ours")]);
    let other = "apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: x}\nspec: {controller: y}\n";
    followed.write("class.yaml", other);
    followed.settle();
    assert_eq!(controllers(), [pair("x", "y")]);
}

#[test]
fn an_object_that_is_the_same_keeps_its_place() {
    let text = format!("{}---\n{}", service("a"), service("b"));
    let followed = Followed::new(&[("a.yaml", &text)]);
    let name = ObjectName::new("default", "a");
    let before = Arc::clone(followed.store.snapshot().services.get(&name).unwrap());
    let _earlier: (_, Vec<Change>) = followed.store.take();
    followed.write("a.yaml", &text.replace("name: b", "name: c"));
    followed.services_when(|names| names == ["default/a", "default/c"]);
    assert!(Arc::ptr_eq(
        &before,
        followed.store.snapshot().services.get(&name).unwrap()
    ));
    let told: Vec<_> = followed
        .store
        .take()
        .1
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        told,
        ["Service default/b deleted", "Service default/c added"]
    );
}

#[test]
fn a_directory_that_is_not_there_is_an_error() {
    let class = AssumedClass {
        name: "nginx".into(),
        controller: "x".into(),
    };
    let store = Arc::new(Store::awaiting([LIST.to_owned()]));
    let error = Manifests::start(Path::new("/nowhere/at/all"), class, store).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot read the directory of manifests /nowhere/at/all"
    );
}

#[test]
fn a_directory_that_is_named_relatively_is_followed() {
    let from_here = |directory: &Path| {
        let here = std::env::current_dir().unwrap();
        let mut relative: PathBuf = here.components().skip(1).map(|_| "..").collect();
        relative.push(directory.strip_prefix("/").unwrap());
        relative
    };
    let followed = Followed::by(&[("a.yaml", &service("a"))], from_here);
    followed.write("b.yaml", &service("b"));
    followed.services_when(|names| names.len() == 2);
}

#[test]
fn looking_through_leaves_a_file_alone_that_is_being_written() {
    let followed = Followed::new(&[("a.yaml", &service("a"))]);
    let class = AssumedClass {
        name: "nginx".into(),
        controller: "example.test/ours".into(),
    };
    let mut files = Directory::new(followed.directory.path(), class);
    assert_eq!(files.look_through(|_| false).ok(), Some(false));
    let objects = |files: &Directory| files.together().objects.len();
    let before = objects(&files);

    // Emptied, and not yet written anew; word of it has not come.
    let mut writer = fs::File::create(followed.path("a.yaml")).unwrap();
    assert_eq!(files.look_through(|_| false).ok(), Some(true));
    assert_eq!(objects(&files), before);
    writer
        .write_all(format!("{}---\n{}", service("a"), service("b")).as_bytes())
        .unwrap();
    drop(writer);
    files.read_again(vec![followed.path("a.yaml")]);
    assert_eq!(objects(&files), before + 1);

    // What has taken a file's place is finished.
    followed.write("new", &service("a"));
    fs::rename(followed.path("new"), followed.path("a.yaml")).unwrap();
    assert_eq!(files.look_through(|_| false).ok(), Some(false));
    assert_eq!(objects(&files), before);
}
