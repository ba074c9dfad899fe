{{- define "platform.name" -}}
{{ default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "platform.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains (include "platform.name" .) .Release.Name -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name (include "platform.name" .) | trunc 50 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{- define "platform.selector" -}}
app.kubernetes.io/name: {{ include "platform.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "platform.labels" -}}
{{ include "platform.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | replace "+" "_" | trunc 63 | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "platform.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{ default (include "platform.fullname" .) .Values.serviceAccount.name }}
{{- else -}}
{{ default "default" .Values.serviceAccount.name }}
{{- end -}}
{{- end }}

{{- define "platform.image" -}}
{{- $repository := required "image.repository: name the repository to which you have copied the image" .Values.image.repository -}}
{{- if .Values.image.registry -}}
{{ $repository = printf "%s/%s" .Values.image.registry $repository }}
{{- end -}}
{{- if .Values.image.digest -}}
{{ printf "%s@%s" $repository .Values.image.digest }}
{{- else -}}
{{ printf "%s:%s" $repository (default (.Chart.AppVersion | replace "+" "_") .Values.image.tag) }}
{{- end -}}
{{- end }}

{{- define "platform.issuer" -}}
{{ required "issuer: the URL at which clients reach the platform, such as https://platform.example.com/kubernetes/management" .Values.issuer }}
{{- end }}

{{/* The host of the issuer, without a port. */}}
{{- define "platform.host" -}}
{{ regexReplaceAll "^https://([^/:]+).*$" (include "platform.issuer" .) "${1}" }}
{{- end }}

{{/* The names of the certificate, separated by commas. */}}
{{- define "platform.dnsNames" -}}
{{- $service := include "platform.fullname" . -}}
{{- $names := list (include "platform.host" .) $service (printf "%s.%s" $service .Release.Namespace) (printf "%s.%s.svc" $service .Release.Namespace) -}}
{{ join "," (concat $names .Values.tls.certManager.dnsNames | uniq) }}
{{- end }}

{{/* The Secret with the certificate of the pods. Empty: the platform's own authority. */}}
{{- define "platform.tlsSecret" -}}
{{- if and .Values.tls.existingSecret .Values.tls.certManager.enabled -}}
{{ fail "tls: set existingSecret or certManager, not both" }}
{{- else if .Values.tls.certManager.enabled -}}
{{ printf "%s-tls" (include "platform.fullname" .) }}
{{- else -}}
{{ .Values.tls.existingSecret }}
{{- end -}}
{{- end }}

{{- define "platform.adminSecret" -}}
{{ default (printf "%s-admin-key" (include "platform.fullname" .)) .Values.adminKey.existingSecret }}
{{- end }}

{{/* The ConfigMap with the platform configuration. Empty: none. */}}
{{- define "platform.configMap" -}}
{{- if and .Values.config .Values.existingConfigMap -}}
{{ fail "config: set config or existingConfigMap, not both" }}
{{- else if .Values.config -}}
{{ printf "%s-config" (include "platform.fullname" .) }}
{{- else -}}
{{ .Values.existingConfigMap }}
{{- end -}}
{{- end }}

{{/* The variables of the state, which every process of the platform needs. */}}
{{- define "platform.stateEnv" -}}
- name: PLATFORM_REDIS_URL
{{- if and .Values.redis.url .Values.redis.existingSecret }}
{{ fail "redis: set url or existingSecret, not both" }}
{{- else if .Values.redis.existingSecret }}
  valueFrom:
    secretKeyRef:
      name: {{ .Values.redis.existingSecret }}
      key: url
{{- else }}
{{- $url := required "redis: set url, or existingSecret with the entry url" .Values.redis.url }}
{{- if contains "@" $url }}
{{ fail "redis.url: has a password; put the URL into a Secret, and name it in redis.existingSecret" }}
{{- end }}
{{- if .Values.redis.caSecret }}
{{- $url = printf "%s%sca_file=/etc/platform/redis-ca/ca.crt" $url (ternary "&" "?" (contains "?" $url)) }}
{{- end }}
  value: {{ $url | quote }}
{{- end }}
- name: PLATFORM_ENCRYPTION_KEY
  valueFrom:
    secretKeyRef:
      name: {{ required "encryption.existingSecret: name a Secret with the encryption key in the entry key" .Values.encryption.existingSecret }}
      key: key
{{- end }}

{{/* Half of the memory limit in bytes. Empty: there is no limit, or it has a unit that is not known here. */}}
{{- define "platform.goMemLimit" -}}
{{- $limit := toString (default "" (default dict .Values.resources.limits).memory) -}}
{{- $units := dict "" 1 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "k" 1000 "M" 1000000 "G" 1000000000 -}}
{{- $unit := regexReplaceAll "^[0-9]+" $limit "" -}}
{{- if and $limit (hasKey $units $unit) (ne $limit $unit) -}}
{{ div (mul (int64 (trimSuffix $unit $limit)) (get $units $unit)) 2 }}
{{- end -}}
{{- end }}

{{/* Refuses texts among the values in words, all at once: a schema would answer with a regular expression. No text with an @ is quoted,
because it may have a password. */}}
{{- define "platform.checkTexts" -}}
{{- $object := "^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?$" -}}
{{- $named := "the name of an object: lower case letters, digits, - and ., with a letter or a digit at both ends" -}}
{{- $checks := list
  (list "issuer" .Values.issuer "^(https://[^/?#@\\s]+(/[^?#@\\s]*[^/?#@\\s])?)?$" "an https URL without a user, a query, a fragment or a slash at the end")
  (list "image.registry" .Values.image.registry "^[^\\s@]*[^\\s@/]$|^$" "a host, with a port and a path if it has them, without a slash at the end")
  (list "image.repository" .Values.image.repository "^[^\\s@:]*$|^[^\\s@]*/[^\\s@:]*$" "a repository without a tag or a digest")
  (list "image.tag" .Values.image.tag "^[\\w][\\w.-]{0,127}$|^$" "at most 128 letters, digits, _, . and -, with a letter, a digit or _ at the beginning")
  (list "image.digest" .Values.image.digest "^(sha256:[0-9a-f]{64})?$" "sha256: and 64 hex digits")
  (list "redis.url" .Values.redis.url "^((rediss?|rediss?-cluster|rediss?-sentinel|unix)://.*)?$" "a URL with redis, rediss, one of them with -cluster or -sentinel, or unix")
  (list "redis.existingSecret" .Values.redis.existingSecret $object $named)
  (list "redis.caSecret" .Values.redis.caSecret $object $named)
  (list "encryption.existingSecret" .Values.encryption.existingSecret $object $named)
  (list "tls.existingSecret" .Values.tls.existingSecret $object $named)
  (list "tls.certManager.issuerRef.name" (default dict .Values.tls.certManager.issuerRef).name $object $named)
  (list "adminKey.existingSecret" .Values.adminKey.existingSecret $object $named)
  (list "existingConfigMap" .Values.existingConfigMap $object $named)
  (list "nameOverride" .Values.nameOverride "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$" "lower case letters, digits and -, with a letter or a digit at both ends")
  (list "fullnameOverride" .Values.fullnameOverride "^([a-z]([-a-z0-9]*[a-z0-9])?)?$" "lower case letters, digits and -, with a letter at the beginning and no - at the end")
  (list "serviceAccount.name" .Values.serviceAccount.name $object $named)
  (list "priorityClassName" .Values.priorityClassName $object $named)
  (list "ingress.className" .Values.ingress.className $object $named)
  (list "ingress.host" .Values.ingress.host "^[^/\\s:]*$" "a host without a scheme, a port or a path")
  (list "ingress.tlsSecret" .Values.ingress.tlsSecret $object $named)
  (list "serviceMonitor.existingSecret" .Values.serviceMonitor.existingSecret $object $named)
  (list "serviceMonitor.interval" .Values.serviceMonitor.interval "^([0-9]+(ms|s|m|h))+$" "a duration with ms, s, m or h, such as 30s")
-}}
{{- range $i, $secret := .Values.imagePullSecrets -}}
{{- $checks = concat $checks (list (list (printf "imagePullSecrets[%d].name" $i) $secret.name $object $named)) -}}
{{- end -}}
{{- if kindIs "string" .Values.podDisruptionBudget.maxUnavailable -}}
{{- $checks = concat $checks (list (list "podDisruptionBudget.maxUnavailable" .Values.podDisruptionBudget.maxUnavailable "^[0-9]+%?$" "a whole number, or a percentage such as 25%")) -}}
{{- end -}}
{{- $settings := default dict .Values.settings -}}
{{- range splitList " " (include "platform.numbers" .) -}}
{{- if and (hasKey $settings .) (kindIs "string" (get $settings .)) -}}
{{- $checks = concat $checks (list (list (printf "settings.%s" .) (get $settings .) "^[0-9]+$" "a whole number")) -}}
{{- end -}}
{{- end -}}
{{- $wrong := list -}}
{{- range $checks -}}
{{- $text := toString (default "" (index . 1)) -}}
{{- if not (regexMatch (index . 2) $text) -}}
{{- $got := ternary "" (printf ", got %q" $text) (contains "@" $text) -}}
{{- $wrong = concat $wrong (list (printf "%s: must be %s%s" (index . 0) (index . 3) $got)) -}}
{{- end -}}
{{- end -}}
{{- if $wrong -}}
{{ fail (join "\n" $wrong) }}
{{- end -}}
{{- end }}
