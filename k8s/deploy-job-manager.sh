#!/usr/bin/env bash
# Deploys the job manager of one Iceberg job: the variables of docs/job-manager.md, taken from the environment,
# become a ConfigMap, a Secret, a Service and a Deployment. Run it again after a change; what is equal stays.
set -euo pipefail
export LC_ALL=C

usage() {
    cat <<'END'
usage: k8s/deploy-job-manager.sh [--dry-run] [--wait]

  --dry-run  print what would be applied, without passwords, and ask no cluster
  --wait     return when the job manager is ready

Required variables:  KAFKA_BOOTSTRAP_SERVERS CONNECT_GROUP_ID CONTROL_TOPIC CATALOG_NAME
Taken if they are set: CATALOG_* KAFKA_SECURITY_PROTOCOL KAFKA_SASL_* KAFKA_SSL_* SOURCE_GROUP_ID JOB_ID COMMIT_*
    ENABLE_TRANSACTIONS TRANSACTIONAL_ID TRANSACTION_TIMEOUT_MINUTES LOG_LEVEL LOG_FORMAT (docs/job-manager.md)
Of the deployment:
  JOB_NAME   the label job=… and the end of all names; CONNECT_GROUP_ID as a DNS label if it is not set
  NAMESPACE  default
  IMAGE      icestream/icestream:latest
END
}

fail() {
    echo "deploy-job-manager: $1" >&2
    exit 1
}

dry_run=false wait=false
for argument in "$@"; do
    case $argument in
        --dry-run) dry_run=true ;;
        --wait) wait=true ;;
        -h | --help)
            usage
            exit
            ;;
        *)
            usage >&2
            fail "'$argument' is no option"
            ;;
    esac
done

absent=()
for name in KAFKA_BOOTSTRAP_SERVERS CONNECT_GROUP_ID CONTROL_TOPIC CATALOG_NAME; do
    [[ -n ${!name:-} ]] || absent+=("$name")
done
((${#absent[@]} == 0)) || fail "set these variables first: ${absent[*]}"

# -- names: what users write ends up in YAML, so only what can do no harm there is let through --

dns_label() {
    # What had to be changed gets a checksum: two groups must not end as one job.
    local label
    label=$(tr '[:upper:]' '[:lower:]' <<<"$1" | tr -c 'a-z0-9\n' '-' | tr '\n' '-' | sed 's/^-*//; s/-*$//')
    if [[ $label != "$1" || ${#label} -gt 40 ]]; then
        label="$(cut -c -29 <<<"$label" | sed 's/-*$//')-$(cksum <<<"$1" | cut -d ' ' -f 1)"
    fi
    echo "${label#-}"
}

job=${JOB_NAME:-$(dns_label "$CONNECT_GROUP_ID")}
namespace=${NAMESPACE:-default}
image=${IMAGE:-icestream/icestream:latest}
label='^[a-z0-9]([a-z0-9-]*[a-z0-9])?$'
[[ $job =~ $label && ${#job} -le 40 ]] ||
    fail "JOB_NAME='$job' is no DNS label of at most 40 characters: use a-z, 0-9 and dashes"
[[ $namespace =~ $label && ${#namespace} -le 63 ]] || fail "NAMESPACE='$namespace' is no name of a namespace"
[[ $image =~ ^[A-Za-z0-9][A-Za-z0-9._/@:-]*$ ]] || fail "IMAGE='$image' is no reference of an image"
name="iceberg-job-manager-$job"

# -- variables: plain ones into the ConfigMap, secrets into the Secret --

is_taken() {
    case $1 in
        KAFKA_BOOTSTRAP_SERVERS | KAFKA_SECURITY_PROTOCOL | KAFKA_SASL_* | KAFKA_SSL_*) ;;
        CONNECT_GROUP_ID | SOURCE_GROUP_ID | CONTROL_TOPIC | JOB_ID | CATALOG_* | LOG_LEVEL | LOG_FORMAT) ;;
        COMMIT_INTERVAL_MINUTES | COMMIT_TIMEOUT_MINUTES | COMMIT_THREADS | COMMIT_BRANCH) ;;
        ENABLE_TRANSACTIONS | TRANSACTIONAL_ID | TRANSACTION_TIMEOUT_MINUTES) ;;
        *) return 1 ;;
    esac
}

is_secret() {
    # By its name, or because an address has a login in it.
    local lower
    lower=$(tr '[:upper:]' '[:lower:]' <<<"$1")
    [[ $lower =~ passw|pwd|secret|token|credential|authorization|jaas|key ]] ||
        [[ $2 =~ ://.*@ ]] || grep -qiE '(passw(or)?d|pwd|secret|token)=' <<<"$2"
}

quoted() {
    # A string of JSON, which is one of YAML too.
    local text=$2
    text=${text//\\/\\\\}
    text=${text//\"/\\\"}
    text=${text//$'\n'/\\n}
    text=${text//$'\r'/\\r}
    text=${text//$'\t'/\\t}
    [[ $text != *[[:cntrl:]]* ]] || fail "$1 has a control character; take it out"
    printf '"%s"' "$text"
}

plain='' secret='' secrets=()
while IFS= read -r -d '' pair; do
    variable=${pair%%=*} value=${pair#*=}
    if ! is_taken "$variable" || [[ -z ${value//[[:space:]]/} ]]; then
        continue
    fi
    [[ $variable =~ ^[A-Za-z0-9._-]+$ ]] || fail "the variable '$variable' cannot be one in a pod; rename it"
    if is_secret "$variable" "$value"; then
        secret+="  $variable: $(printf '%s' "$value" | base64 | tr -d '\n')"$'\n'
        secrets+=("$variable")
    else
        text=$(quoted "$variable" "$value")
        plain+="  $variable: $text"$'\n'
    fi
done < <(env -0 | sort -z)

labels="{app: iceberg-job-manager, job: \"$job\", app.kubernetes.io/name: icestream, app.kubernetes.io/component: job-manager}"
configmap=$(
    cat <<END
apiVersion: v1
kind: ConfigMap
metadata:
  name: $name
  namespace: "$namespace"
  labels: $labels
data:
${plain}  # Where the probes and Prometheus reach it.
  HTTP_HOST: "0.0.0.0"
  HTTP_PORT: "8080"
END
)

objects() {
    cat <<END
$configmap
---
apiVersion: v1
kind: Service
metadata:
  name: $name
  namespace: "$namespace"
  labels: $labels
spec:
  selector: {app: iceberg-job-manager, job: "$job"}
  ports:
    - {name: http, port: 8080, targetPort: http}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: $name
  namespace: "$namespace"
  labels: $labels
spec:
  # One at a time: a second one would shut the first out. No disruption budget, which would block drains.
  replicas: 1
  strategy: {type: Recreate}
  selector:
    matchLabels: {app: iceberg-job-manager, job: "$job"}
  template:
    metadata:
      labels: $labels
      annotations:
        # Another configuration is another pod.
        icestream.dev/configuration: "$(cksum <<<"$configmap" | cut -d ' ' -f 1)"
    spec:
      automountServiceAccountToken: false
      # Kubernetes' variables for a Service called "catalog" would be properties of the catalog.
      enableServiceLinks: false
      terminationGracePeriodSeconds: 60
      securityContext:
        runAsNonRoot: true
        runAsUser: 185
        runAsGroup: 0
        seccompProfile: {type: RuntimeDefault}
      containers:
        - name: job-manager
          image: "$image"
          args: [job-manager]
          envFrom:
            - configMapRef: {name: $name}
            - secretRef: {name: $name, optional: $( ((${#secrets[@]})) && echo false || echo true)}
          ports:
            - {name: http, containerPort: 8080}
          startupProbe:
            httpGet: {path: /live, port: http}
            periodSeconds: 5
            failureThreshold: 60
          livenessProbe:
            httpGet: {path: /live, port: http}
            periodSeconds: 10
            timeoutSeconds: 10
          readinessProbe:
            httpGet: {path: /ready, port: http}
            periodSeconds: 10
            timeoutSeconds: 10
          resources:
            requests: {cpu: 250m, memory: 512Mi}
            limits: {cpu: "1", memory: 1Gi}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {drop: [ALL]}
          volumeMounts:
            - {name: tmp, mountPath: /tmp}
            - {name: home, mountPath: /home/icestream}
      volumes:
        - name: tmp
          emptyDir: {sizeLimit: 1Gi}
        - name: home
          emptyDir: {sizeLimit: 256Mi}
END
}

if $dry_run; then
    objects
    ((${#secrets[@]} == 0)) || echo "# and Secret $name, not printed, with ${secrets[*]}"
    exit
fi

command -v kubectl >/dev/null || fail "there is no kubectl on the PATH; install it, or look with --dry-run"
apply() {
    # Server-side: the client's own way would keep a copy of the passwords in an annotation.
    kubectl apply --server-side --force-conflicts --field-manager=deploy-job-manager -f -
}

objects | apply ||
    fail "kubectl applied nothing, or not all; 'kubectl cluster-info' tells which cluster it asks (KUBECONFIG, 'kubectl config use-context'), and --dry-run asks none"
if ((${#secrets[@]})); then
    # It goes with the Deployment: whoever deletes that by its label need not think of secrets.
    uid=$(kubectl get deployment "$name" -n "$namespace" -o 'jsonpath={.metadata.uid}')
    apply <<END
apiVersion: v1
kind: Secret
metadata:
  name: $name
  namespace: "$namespace"
  labels: $labels
  ownerReferences:
    - {apiVersion: apps/v1, kind: Deployment, name: $name, uid: "$uid"}
type: Opaque
data:
$secret
END
    # Another password is another pod; its version says so without telling anything of it.
    version=$(kubectl get secret "$name" -n "$namespace" -o 'jsonpath={.metadata.resourceVersion}')
    kubectl patch deployment "$name" -n "$namespace" --field-manager=deploy-job-manager-secret -p \
        "{\"spec\":{\"template\":{\"metadata\":{\"annotations\":{\"icestream.dev/secret\":\"$version\"}}}}}"
else
    kubectl delete secret "$name" -n "$namespace" --ignore-not-found
fi
if $wait; then
    kubectl rollout status deployment "$name" -n "$namespace" --timeout=10m
fi
echo "logs:    kubectl logs -n $namespace -l job=$job -f"
echo "clean up: kubectl delete deployment,service,configmap -n $namespace -l job=$job"
