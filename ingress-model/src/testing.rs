//! A kit for tests of what manifests lead to, for the CI of those who write them. Needs the feature `testing`.
//!
//! A [`Fixture`] reads manifests as the controller's own source of manifests does, and [`Served`] is what a merge makes
//! of them, with assertions whose panics show what was expected beside what was found.
//!
//! ```
//! use ingress_model::testing::Fixture;
//!
//! let served = Fixture::from_yaml(
//!     "
//! apiVersion: networking.k8s.io/v1
//! kind: Ingress
//! metadata: {name: front, namespace: shop}
//! spec:
//!   ingressClassName: nginx
//!   rules:
//!   - host: shop.test
//!     http:
//!       paths:
//!       - {path: /cart, pathType: Prefix, backend: {service: {name: cart, port: {number: 80}}}}
//! ",
//! )?
//! .merge();
//! served.assert_locations(
//!     "shop.test",
//!     ["/cart/ shop/front shop-cart-80", "= /cart shop/front shop-cart-80", "/ shop/front upstream-default-backend"],
//! );
//! served.assert_request("shop.test/cart/7", "/cart/ shop/front shop-cart-80");
//! served.assert_endpoints("shop.test/cart/7", [] as [&str; 0]);
//! # Ok::<_, ingress_model::testing::FixtureError>(())
//! ```

mod difference;
mod fixture;
mod served;
mod shorthand;

pub use self::{
    fixture::{Fixture, FixtureError},
    served::{Served, location_line},
};
