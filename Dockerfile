# An image with the program, for fleets of machines:
#
#   docker build --tag calibrate:0.1.0 .
#   docker run --rm --volume "$PWD:/data" --user "$(id -u):$(id -g)" calibrate:0.1.0 \
#     --fusion all --quick --output q.toml
#
# A container measures like a process of its host if it may use whole processors: set neither
# --cpus nor a quota, and choose processors with --cpuset-cpus. GPUs come with the libraries that
# the vendor's container runtime mounts.

# The oldest Rust that everything is built with; a newer one works too.
FROM rust:1.95-bookworm AS build
WORKDIR /source
COPY . .
RUN cargo build --release --locked --package calibrate --features parquet

FROM debian:bookworm-slim
# A user without a name, who owns nothing but the folder of results and that of caches.
RUN install --directory --owner=65532 --group=65532 /data /home/calibrate
COPY --from=build /source/target/release/calibrate /usr/local/bin/calibrate
COPY --from=build /source/LICENSE-MIT /source/LICENSE-APACHE /usr/share/doc/calibrate/
ENV HOME=/home/calibrate
USER 65532:65532
WORKDIR /data
ENTRYPOINT ["calibrate"]
CMD ["--help"]
